// SVG: a tiny writer of elements, and path data in few bytes.
#include "normlab/report/svg.h"

#include <cmath>
#include <utility>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

// The length of the well-formed UTF-8 sequence at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto first_byte = static_cast<unsigned char>(text[0]);
  const std::size_t length = first_byte < 0x80   ? 1
                             : first_byte < 0xC2 ? 0
                             : first_byte < 0xE0 ? 2
                             : first_byte < 0xF0 ? 3
                             : first_byte < 0xF5 ? 4
                                                 : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  if (length < 3) return length;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first_byte == 0xE0 && second < 0xA0) || (first_byte == 0xF0 && second < 0x90);
  const bool outside = (first_byte == 0xED && second >= 0xA0) || (first_byte == 0xF4 && second >= 0x90);
  const bool noncharacter = first_byte == 0xEF && second == 0xBF && static_cast<unsigned char>(text[2]) >= 0xBE;
  return overlong || outside || noncharacter ? 0 : length;
}

long tenths(double value) {
  if (!(std::abs(value) < 1e7)) {
    throw Error("svg", concat("a coordinate is out of range; got ", value, ", expected a finite number of pixels."));
  }
  return std::lround(value * 10);
}

std::string tenths_text(long value) {
  std::string text = value < 0 ? "-" : "";
  value = std::abs(value);
  append(text, value / 10);
  if (value % 10 != 0) text += concat('.', value % 10);
  return text;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (length > 1) {
      out += text.substr(0, length);
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') {
      out += c;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string px(double value) { return tenths_text(tenths(value)); }

void Svg::start(std::string_view tag, Attributes attributes) {
  out_ += concat('<', tag);
  for (const auto& [name, value] : attributes) {
    if (!value.empty()) out_ += concat(' ', name, "=\"", escape(value), '"');
  }
}

void Svg::open(std::string_view tag, Attributes attributes) {
  start(tag, attributes);
  out_ += '>';
  open_.emplace_back(tag);
}

void Svg::close() {
  out_ += concat("</", open_.back(), ">\n");
  open_.pop_back();
}

void Svg::element(std::string_view tag, Attributes attributes, std::string_view title) {
  start(tag, attributes);
  out_ += title.empty() ? "/>" : concat("><title>", escape(title), "</title></", tag, '>');
}

void Svg::text(double x, double y, std::string_view text, Attributes attributes) {
  start("text", attributes);
  out_ += concat(" x=\"", px(x), "\" y=\"", px(y), "\">", escape(text), "</text>");
}

void Svg::rect(double x, double y, double width, double height, std::string_view css_class) {
  element(
      "rect",
      {{"class", std::string(css_class)}, {"x", px(x)}, {"y", px(y)}, {"width", px(width)}, {"height", px(height)}});
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  element("path",
          {{"class", std::string(css_class)}, {"d", concat('M', px(x1), ' ', px(y1), 'L', px(x2), ' ', px(y2))}});
}

std::string Svg::take() {
  if (!open_.empty()) throw Error("svg", concat("<", open_.back(), "> was left open."));
  return std::exchange(out_, {});
}

void PathData::pair(long x, long y) {
  data_ += tenths_text(x);
  if (y >= 0) data_ += ' ';  // a minus sign separates by itself
  data_ += tenths_text(y);
}

void PathData::move(double x, double y) {
  x_ = tenths(x), y_ = tenths(y);
  data_ += 'M';
  pair(x_, y_);
  in_line_ = false;
}

void PathData::box(double x, double y, double width, double height) {
  move(x, y);
  const long across = tenths(x + width) - x_, down = tenths(y + height) - y_;  // ends where the next box starts
  data_ += concat('h', tenths_text(across), 'v', tenths_text(down), 'h', tenths_text(-across), 'z');
}

void PathData::line(double x, double y) {
  const long dx = tenths(x) - x_, dy = tenths(y) - y_;
  if (!in_line_) {
    data_ += 'l';
  } else if (dx >= 0) {
    data_ += ' ';
  }
  pair(dx, dy);
  x_ += dx, y_ += dy;
  in_line_ = true;
}

}  // namespace normlab
