// The folder of the user's cache, which everything in it can be made again for.
#pragma once

#include <filesystem>
#include <optional>

namespace normlab {

// $XDG_CACHE_HOME/normlab, or ~/.cache/normlab; nothing when neither variable holds an absolute path.
std::optional<std::filesystem::path> user_cache();

}  // namespace normlab
