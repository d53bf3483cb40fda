// A file mapped into memory to be read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

namespace normlab {

struct FileMap {
  std::shared_ptr<const std::byte> start;  // null for an empty file
  size_t size = 0;
};

// DataError when the file is missing or not a regular one.
FileMap map_file(const std::filesystem::path& path);

}  // namespace normlab
