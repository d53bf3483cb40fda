// The terminal: each change of the screen is one write, so that lines of several processes do not mix.
#include "normlab/base/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr std::string_view to_line_start = "\r", erase_rest = "\x1b[K", erase_below = "\x1b[J";
constexpr std::string_view red = "\x1b[31m", yellow = "\x1b[33m", cyan = "\x1b[36m", reset_colour = "\x1b[0m";
constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr auto plain_interval = std::chrono::seconds(5);

std::mutex screen;
ProgressLine* shown_line = nullptr;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool can_redraw(int descriptor) { return is_terminal(descriptor) && environment("TERM") != "dumb"; }

// What cannot be printed on the screen cannot be reported there either: failures are ignored.
void print(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;
    if (count > 0) text.remove_prefix(static_cast<size_t>(count));
  }
}

// Length of the character or colour sequence at the start of the text, and the columns it takes.
struct Glyph {
  size_t bytes;
  int columns;
};
Glyph first_glyph(std::string_view text) {
  if (text.starts_with("\x1b[")) {
    const size_t end = text.find_first_not_of("0123456789;", 2);
    return {end == std::string_view::npos ? text.size() : end + 1, 0};
  }
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) ++bytes;
  return {bytes, 1};
}

// The colour sequence of ours at the start of the text, or nothing.
std::string_view own_colour(std::string_view text) {
  for (const std::string_view each : {red, yellow, cyan, reset_colour})
    if (text.starts_with(each)) return each;
  return {};
}

}  // namespace

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

int terminal_width(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const auto columns = parse_integer(environment("COLUMNS"));
  return columns && *columns > 0 && *columns < 10000 ? static_cast<int>(*columns) : 80;
}

size_t text_width(int descriptor) {
  constexpr size_t least = 40, any = 1'000'000;
  if (!is_terminal(descriptor) && environment("COLUMNS").empty()) return any;
  return std::max(static_cast<size_t>(terminal_width(descriptor)), least);
}

int terminal_height(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

bool use_colour(int descriptor) {
  return can_redraw(descriptor) && environment("NO_COLOR").empty() && environment("CLICOLOR") != "0";
}

std::string error_label(int descriptor) {
  return use_colour(descriptor) ? concat(red, "error", reset_colour, " ") : "error ";
}

std::string warning_label(int descriptor) {
  return use_colour(descriptor) ? concat(yellow, "warning:", reset_colour, " ") : "warning: ";
}

std::string best_value(std::string_view text, bool coloured) {
  return coloured ? concat(cyan, text, reset_colour) : std::string(text);
}

std::string clip_to_width(std::string_view text, int columns) {
  size_t end = 0;
  bool coloured = false;
  for (int used = 0; end < text.size();) {
    const Glyph glyph = first_glyph(text.substr(end));
    if (used + glyph.columns > columns) return concat(text.substr(0, end), coloured ? reset_colour : "");
    used += glyph.columns;
    end += glyph.bytes;
    coloured = coloured || glyph.columns == 0;
  }
  return std::string(text);
}

std::string visible(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const auto byte = static_cast<unsigned char>(rest[0]);
    const bool second_set = byte == 0xc2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xa0;  // U+0080-9F
    if (const std::string_view colour = own_colour(rest); !colour.empty()) {
      out += colour;
      i += colour.size() - 1;
    } else if (second_set || byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      const auto shown = second_set ? static_cast<unsigned char>(rest[1]) : byte;
      out += concat("\\x", digits[shown >> 4], digits[shown & 15]);
      i += second_set;
    } else {
      out += rest[0];
    }
  }
  return out;
}

void log_line(std::string_view text) {
  const std::string line = visible(text);
  const std::lock_guard guard(screen);
  const bool above = shown_line && shown_line->redraws_ && shown_line->shown_at_;
  if (above) {
    const std::string up = shown_line->to_first_row();
    const std::string_view erase = shown_line->rows_ > 1 ? erase_below : erase_rest;
    shown_line->rows_ = 1;
    print(shown_line->descriptor_, concat(up, erase, line, "\n", shown_line->drawing()));
  } else {
    print(STDERR_FILENO, concat(line, "\n"));
  }
}

ProgressLine::ProgressLine(int descriptor) : descriptor_(descriptor), redraws_(can_redraw(descriptor)) {}

std::string ProgressLine::to_first_row() const {
  return rows_ > 1 ? concat(to_line_start, "\x1b[", rows_ - 1, "A") : std::string(to_line_start);
}

std::string ProgressLine::drawing() {
  if (!redraws_) return text_ + "\n";
  const std::vector<std::string> rows = split(text_, '\n');
  std::string out = to_first_row();
  for (size_t i = 0; i < rows.size(); ++i)
    // The last column stays free: writing to it makes some terminals wrap.
    out += concat(i > 0 ? "\n" : "", clip_to_width(rows[i], terminal_width(descriptor_) - 1), erase_rest);
  if (rows_ > rows.size()) out += erase_below;
  rows_ = rows.size();
  return out;
}

void ProgressLine::update(std::string_view text, Clock::time_point now) {
  const std::lock_guard guard(screen);
  shown_line = this;
  text_ = visible(text);
  pending_ = true;
  const Clock::duration interval = redraws_ ? Clock::duration(redraw_interval) : Clock::duration(plain_interval);
  if (shown_at_ && now - *shown_at_ < interval) return;
  print(descriptor_, drawing());
  shown_at_ = now;
  pending_ = false;
}

void ProgressLine::finish() {
  const std::lock_guard guard(screen);
  print(descriptor_, concat(pending_ ? drawing() : "", redraws_ && shown_at_ ? "\n" : ""));
  pending_ = false;
  rows_ = 0;
  shown_at_.reset();
  if (shown_line == this) shown_line = nullptr;
}

}  // namespace normlab
