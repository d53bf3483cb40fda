// The terminal: what it can show, and a progress line that log lines never tear.
#pragma once

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace normlab {

bool is_terminal(int descriptor);
int terminal_width(int descriptor = STDERR_FILENO);
// For sentences and tables: as wide as the terminal, or as COLUMNS says; whole lines where they go to a file or a pipe.
size_t text_width(int descriptor = STDOUT_FILENO);
int terminal_height(int descriptor = STDERR_FILENO);
bool use_colour(int descriptor);  // a terminal, and neither NO_COLOR nor CLICOLOR=0

// Colour is for errors, warnings and the best value only.
std::string error_label(int descriptor);                       // "error ", red
std::string warning_label(int descriptor);                     // "warning: ", yellow
std::string best_value(std::string_view text, bool coloured);  // cyan, which no colour vision takes for red

// The text cut to so many columns, of UTF-8 characters one column wide; colour sequences take none.
std::string clip_to_width(std::string_view text, int columns);

// Prints a line on standard error, above the progress line when one is shown.
void log_line(std::string_view line);

// One line or a few on a terminal, redrawn at most ten times a second; elsewhere plain lines every few seconds. The
// first and the last text always appear. One progress line at a time.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ProgressLine(int descriptor = STDERR_FILENO);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { finish(); }

  void update(std::string_view text, Clock::time_point now = Clock::now());
  void finish();  // leaves the last text on the screen
  bool redraws() const { return redraws_; }

 private:
  friend void log_line(std::string_view line);
  std::string drawing();
  std::string to_first_row() const;

  int descriptor_;
  bool redraws_;
  bool pending_ = false;  // the last text was not shown yet
  std::string text_;
  size_t rows_ = 0;  // on the screen
  std::optional<Clock::time_point> shown_at_;
};

}  // namespace normlab
