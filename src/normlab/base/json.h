// JSON from files that may be damaged or hostile: bounds on size and depth before the parser builds anything.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace normlab {

// False when the text is larger than a gigabyte or nested more than a hundred deep: a value so deep would overflow the
// stack of whatever copies, prints or compares it.
bool json_within_bounds(std::string_view text);

// The value, or a discarded one, for which is_object() and the like are false, when the text is not JSON within bounds.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (!json_within_bounds(text)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// A size in an object of another program; DataError unless it is a whole number from 1 to the largest int.
int size_in(const nlohmann::json& object, const char* key);

}  // namespace normlab
