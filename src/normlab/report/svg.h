// SVG: a tiny writer of elements, and path data in few bytes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// Safe as the text of an element and inside a quoted attribute, in HTML and in XML: markup is escaped, control
// characters are dropped and broken UTF-8 becomes U+FFFD, so that no user text can make a file unreadable.
std::string escape(std::string_view text);

std::string px(double value);  // a coordinate with at most one decimal: 12.5, 12, -3; throws when it is not finite

struct Attribute {
  std::string_view name;
  std::string value;
};
using Attributes = std::initializer_list<Attribute>;

class Svg {
 public:
  void open(std::string_view tag, Attributes attributes = {});
  void close();
  // An element without children, or with a <title>, which browsers show on hover.
  void element(std::string_view tag, Attributes attributes, std::string_view title = {});
  void text(double x, double y, std::string_view text, Attributes attributes = {});
  void rect(double x, double y, double width, double height, std::string_view css_class);
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  std::string take();  // what was written; every group must be closed

 private:
  void start(std::string_view tag, Attributes attributes);
  std::string out_;
  std::vector<std::string> open_;
};

// Path data in relative tenths of a pixel: about eight bytes a point.
class PathData {
 public:
  void move(double x, double y);
  void line(double x, double y);
  void close() { data_ += 'z'; }
  void box(double x, double y, double width, double height);
  bool empty() const { return data_.empty(); }
  std::string take() { return std::move(data_); }

 private:
  void pair(long x, long y);
  std::string data_;
  long x_ = 0, y_ = 0;  // the last point, in tenths
  bool in_line_ = false;
};

}  // namespace normlab
