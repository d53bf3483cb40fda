// Bytes as text, by RFC 4648.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace normlab {

std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);  // nothing for what is no base64

}  // namespace normlab
