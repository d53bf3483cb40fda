// HTML that is known to be safe: its own type, so that a user's text cannot slip in unescaped.
#include "normlab/report/html.h"

#include "normlab/base/text.h"
#include "normlab/report/svg.h"

namespace normlab {

Html paragraph(std::string_view text) { return {concat("<p>", escape(text), "</p>\n")}; }

Html code_block(std::string_view text) {
  return {concat("<pre tabindex=\"0\"><code>", escape(text), "</code></pre>\n")};
}

Html collapsed(std::string_view summary, const Html& content) {
  return {concat("<details><summary>", escape(summary), "</summary>\n", content.text, "</details>\n")};
}

Html list(const std::vector<std::string>& items) {
  std::string out = "<ul>\n";
  for (const std::string& item : items) out += concat("<li>", escape(item), "</li>\n");
  return {out + "</ul>\n"};
}

Html columns(const std::vector<Html>& parts) {
  std::string out = "<div class=\"columns\">\n";
  for (const Html& part : parts) out += part.text;
  return {out + "</div>\n"};
}

std::string slug(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "x" : out;
}

}  // namespace normlab
