#include "normlab/base/json.h"

#include <limits>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

bool json_within_bounds(std::string_view text) {
  constexpr size_t largest = size_t{1} << 30;
  constexpr int deepest = 100;
  if (text.size() > largest) return false;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;  // whatever is escaped is not the end of the text
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{') && ++depth > deepest)
      return false;
    else if (!quoted && (c == ']' || c == '}'))
      --depth;
  }
  return true;
}

int size_in(const nlohmann::json& object, const char* key) {
  constexpr unsigned largest = std::numeric_limits<int>::max();
  const nlohmann::json& value = object.at(key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > largest)
    throw DataError(key, concat("got ", value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
                                ", expected a whole number from 1 to ", largest, "."));
  return value;
}

}  // namespace normlab
