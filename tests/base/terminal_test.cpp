// The terminal: progress on a pseudo-terminal and on a pipe.
#include "normlab/base/terminal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <cstdlib>

namespace normlab {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// The two ends of a pipe or pseudo-terminal; what is written to `in` is read from `out`.
struct Channel {
  int in = -1, out = -1;

  static Channel pipe() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    return {ends[1], ends[0]};
  }
  static Channel terminal(unsigned short columns) {
    Channel made;
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    EXPECT_EQ(::openpty(&made.out, &made.in, nullptr, nullptr, &size), 0);
    return made;
  }
  ~Channel() {
    ::close(in);
    ::close(out);
  }
  std::string text() const {
    ::fcntl(out, F_SETFL, O_NONBLOCK);
    std::string all;
    char buffer[4096];
    for (ssize_t count; (count = ::read(out, buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<size_t>(count));
    return all;
  }
};

class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TERM", "xterm", 1);
    for (const char* name : {"NO_COLOR", "CLICOLOR", "COLUMNS"}) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  const ProgressLine::Clock::time_point start = ProgressLine::Clock::now();
};

TEST_F(Terminal, WidthOfTheTerminalOrOfTheEnvironment) {
  EXPECT_EQ(terminal_width(Channel::terminal(47).in), 47);
  const Channel pipe = Channel::pipe();
  EXPECT_EQ(terminal_width(pipe.in), 80);
  ::setenv("COLUMNS", "123", 1);
  EXPECT_EQ(terminal_width(pipe.in), 123);
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(terminal_width(pipe.in), 80);
}

TEST_F(Terminal, ColourOnlyWhereItIsWelcome) {
  const Channel terminal = Channel::terminal(80), pipe = Channel::pipe();
  EXPECT_TRUE(is_terminal(terminal.in));
  EXPECT_FALSE(is_terminal(pipe.in));
  EXPECT_TRUE(use_colour(terminal.in));
  EXPECT_FALSE(use_colour(pipe.in));
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(use_colour(terminal.in));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(use_colour(terminal.in));
  ::unsetenv("NO_COLOR");
  ::setenv("CLICOLOR", "0", 1);
  EXPECT_FALSE(use_colour(terminal.in));
  ::unsetenv("CLICOLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(use_colour(terminal.in));
}

TEST_F(Terminal, ClipCountsCharacters) {
  EXPECT_EQ(clip_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(clip_to_width("abcdef", 5), "abcde");
  EXPECT_EQ(clip_to_width("\u00e4\u00f6\u00fc", 2), "\u00e4\u00f6");
  EXPECT_EQ(clip_to_width("\x1b[1;31mabc\x1b[0m", 3), "\x1b[1;31mabc\x1b[0m");
  EXPECT_EQ(clip_to_width("\x1b[1;31mabc\x1b[0m", 2), "\x1b[1;31mab\x1b[0m");
  EXPECT_EQ(clip_to_width("abc", 0), "");
}

TEST_F(Terminal, RedrawsAtMostTenTimesASecond) {
  const Channel terminal = Channel::terminal(80);
  ProgressLine line(terminal.in);
  for (int i = 0; i <= 1000; ++i) line.update("step " + std::to_string(i), start + milliseconds(i));
  line.finish();
  const std::string text = terminal.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r') - 1, 11);  // less the one of the final \r\n
  EXPECT_TRUE(text.starts_with("\rstep 0\x1b[K\rstep 100\x1b[K"));
  EXPECT_TRUE(text.ends_with("\rstep 1000\x1b[K\r\n"));
}

TEST_F(Terminal, LastTextIsShownAtTheEnd) {
  const Channel terminal = Channel::terminal(80);
  {
    ProgressLine line(terminal.in);
    line.update("first", start);
    line.update("last", start + milliseconds(1));
  }
  EXPECT_EQ(terminal.text(), "\rfirst\x1b[K\rlast\x1b[K\r\n");
}

TEST_F(Terminal, LineIsClippedToTheWidth) {
  const Channel terminal = Channel::terminal(10);
  ProgressLine(terminal.in).update("0123456789abc", start);
  EXPECT_EQ(terminal.text(), "\r012345678\x1b[K\r\n");
}

TEST_F(Terminal, LogLinesAppearAboveTheProgress) {
  const Channel terminal = Channel::terminal(80);
  ProgressLine line(terminal.in);
  line.update("step 1", start);
  log_line("saved");
  line.finish();
  EXPECT_EQ(terminal.text(), "\rstep 1\x1b[K\r\x1b[Ksaved\r\n\rstep 1\x1b[K\r\n");
}

TEST_F(Terminal, SeveralRowsAreRedrawnInPlace) {
  const Channel terminal = Channel::terminal(80);
  ProgressLine line(terminal.in);
  EXPECT_TRUE(line.redraws());
  line.update("one\ntwo\nthree", start);
  EXPECT_EQ(terminal.text(), "\rone\x1b[K\r\ntwo\x1b[K\r\nthree\x1b[K");
  log_line("saved");
  EXPECT_EQ(terminal.text(), "\r\x1b[2A\x1b[Jsaved\r\n\rone\x1b[K\r\ntwo\x1b[K\r\nthree\x1b[K");
  line.update("last", start + milliseconds(200));
  EXPECT_EQ(terminal.text(), "\r\x1b[2Alast\x1b[K\x1b[J");
  line.finish();
  EXPECT_EQ(terminal.text(), "\r\n");
}

TEST_F(Terminal, Height) {
  EXPECT_EQ(terminal_height(Channel::terminal(47).in), 24);
  EXPECT_EQ(terminal_height(Channel::pipe().in), 24);
}

TEST_F(Terminal, LogLinesWithoutProgressGoToStandardError) {
  testing::internal::CaptureStderr();
  log_line("plain");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "plain\n");
}

TEST_F(Terminal, PipeGetsPlainLinesEveryFewSeconds) {
  const Channel pipe = Channel::pipe();
  ProgressLine line(pipe.in);
  for (int i = 0; i <= 12000; i += 10) line.update("step " + std::to_string(i), start + milliseconds(i));
  line.finish();
  line.finish();
  EXPECT_EQ(pipe.text(), "step 0\nstep 5000\nstep 10000\nstep 12000\n");
}

TEST_F(Terminal, UnusedProgressPrintsNothing) {
  const Channel terminal = Channel::terminal(80), pipe = Channel::pipe();
  ProgressLine(terminal.in).finish();
  ProgressLine(pipe.in).finish();
  EXPECT_EQ(terminal.text() + pipe.text(), "");
}

TEST_F(Terminal, DumbTerminalIsNotRedrawn) {
  ::setenv("TERM", "dumb", 1);
  const Channel terminal = Channel::terminal(80);
  ProgressLine(terminal.in).update("text", start);
  EXPECT_EQ(terminal.text(), "text\r\n");
}

TEST(Visible, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(visible("a\x1b[2J\x07\x7f\r\xc2\x9b"
                    "b"),
            "a\\x1b[2J\\x07\\x7f\\x0d\\x9b"
            "b");
  EXPECT_EQ(visible("\x1b[8m\x1b[31;1m"), "\\x1b[8m\\x1b[31;1m");
}

TEST(Visible, TextStaysAsItIs) {
  const std::string_view text = "one\ttwo\nd\xc3\xa9j\xc3\xa0 \xe2\x88\x92\xc2\xa0 \x1b[31merror\x1b[0m";
  EXPECT_EQ(visible(text), text);
  EXPECT_EQ(visible("\xc2"), "\xc2");
}

TEST_F(Terminal, TextIsAsWideAsTheTerminalOrAsColumnsSays) {
  const Channel narrow = Channel::terminal(60), tiny = Channel::terminal(10), pipe = Channel::pipe();
  ::unsetenv("COLUMNS");
  EXPECT_EQ(text_width(narrow.in), 60U);
  EXPECT_EQ(text_width(tiny.in), 40U);
  EXPECT_GT(text_width(pipe.in), 10000U);
  ::setenv("COLUMNS", "80", 1);
  EXPECT_EQ(text_width(pipe.in), 80U);
  ::unsetenv("COLUMNS");
}

TEST_F(Terminal, ColourIsForTerminals) {
  const Channel terminal = Channel::terminal(80), pipe = Channel::pipe();
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_THAT(warning_label(terminal.in), HasSubstr("\x1b[33m"));
  EXPECT_EQ(warning_label(pipe.in), "warning: ");
  EXPECT_EQ(error_label(pipe.in), "error ");
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(warning_label(terminal.in), "warning: ");
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(best_value("1.5", false), "1.5");
  EXPECT_EQ(best_value("1.5", true), "\x1b[36m1.5\x1b[0m");
  for (const std::string& coloured : {best_value("1.5", true), warning_label(terminal.in), error_label(terminal.in)})
    EXPECT_EQ(visible(coloured), coloured);
}

}  // namespace
}  // namespace normlab
