#include "normlab/record/file_map.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"

namespace normlab {

FileMap map_file(const std::filesystem::path& path) {
  const File file = File::open_to_read(path);
  struct stat facts {};
  if (::fstat(file.descriptor(), &facts) != 0 || !S_ISREG(facts.st_mode))
    throw DataError(path.string(), "is not a regular file.");
  const auto size = static_cast<size_t>(facts.st_size);
  if (size == 0) return {};
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (start == MAP_FAILED) throw_errno(path, "map the file into memory");
  const auto unmap = [size](const std::byte* first) { ::munmap(const_cast<std::byte*>(first), size); };
  return {{static_cast<const std::byte*>(start), unmap}, size};
}

}  // namespace normlab
