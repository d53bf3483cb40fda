// Bounds on a TOML text, checked before it is parsed.
#pragma once

#include <string>
#include <string_view>

namespace normlab {

// UsageError, about the file `name`, when the text is larger than 64 MB or a key in it has more than 50 parts: each is
// a table in a table, and the parser would nest them without end. Likewise for non-ASCII characters outside strings and
// comments, or after a backslash in a string.
void require_toml_within_bounds(std::string_view text, const std::string& name);

}  // namespace normlab
