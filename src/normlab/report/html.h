// HTML that is known to be safe: its own type, so that a user's text cannot slip in unescaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab {

struct Html {
  std::string text;
};

Html paragraph(std::string_view text);
Html code_block(std::string_view text);
Html collapsed(std::string_view summary, const Html& content);  // opened by the reader

Html list(const std::vector<std::string>& items);
Html columns(const std::vector<Html>& parts);  // as many beside each other as the window has room for

// Lower-case letters, digits and dashes: an id that needs no quoting anywhere. Empty text gives "x".
std::string slug(std::string_view text);

}  // namespace normlab
