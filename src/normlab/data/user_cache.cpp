#include "normlab/data/user_cache.h"

#include <cstdlib>

namespace normlab {
namespace {

namespace fs = std::filesystem;

// An environment variable that holds an absolute path, or nothing: XDG says to ignore the rest.
std::optional<fs::path> folder_from(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || !fs::path(value).is_absolute()) return std::nullopt;
  return fs::path(value);
}

}  // namespace

std::optional<fs::path> user_cache() {
  if (const auto cache = folder_from("XDG_CACHE_HOME")) return *cache / "normlab";
  if (const auto home = folder_from("HOME")) return *home / ".cache" / "normlab";
  return std::nullopt;
}

}  // namespace normlab
