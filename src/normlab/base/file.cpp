// Files: thin wrappers of the system calls that retry, check and explain.
#include "normlab/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "normlab/base/error.h"
#include "normlab/base/memory.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

int open_descriptor(const std::filesystem::path& path, int flags) {
  int descriptor;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

bool is_handed_over(const std::filesystem::path& path) {
  const std::string name = path.string();
  return name == "/dev/stdin" || name.starts_with("/dev/fd/") || name.starts_with("/proc/self/fd/");
}

}  // namespace

void throw_errno(const std::filesystem::path& path, std::string_view action) {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw Error(path.string(),
              concat("cannot ", action, ": ", reason(code), ".", full ? " Free some space, then retry." : ""));
}

File File::open_to_read(const std::filesystem::path& path) {
  const bool handed = is_handed_over(path);
  File file(path, open_descriptor(path, handed ? O_RDONLY : O_RDONLY | O_NONBLOCK));
  if (file.descriptor_ < 0) throw DataError(path.string(), concat("cannot open the file: ", reason(errno), "."));
  struct stat facts {};
  if (::fstat(file.descriptor_, &facts) != 0) throw_errno(path, "examine the file");
  if (S_ISDIR(facts.st_mode)) {
    throw DataError(path.string(), "is a folder, expected a file.");
  }
  if (!handed && !S_ISREG(facts.st_mode)) throw DataError(path.string(), "is not a regular file.");
  return file;
}

File File::create(const std::filesystem::path& path, const std::filesystem::path& shown) {
  const int descriptor = open_descriptor(path, O_WRONLY | O_CREAT | O_EXCL);
  if (descriptor < 0) throw_errno(shown, "create the file");
  return {shown, descriptor};
}

File File::append(const std::filesystem::path& path) {
  const int descriptor = open_descriptor(path, O_WRONLY | O_CREAT | O_APPEND);
  if (descriptor < 0) throw_errno(path, "open the file for writing");
  return {path, descriptor};
}

File File::open_own(const std::filesystem::path& path) {
  File file(path, open_descriptor(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK));
  if (file.descriptor_ < 0 && errno == ELOOP)
    throw Error(path.string(), "is a symbolic link, which is not followed. Remove it.");
  if (file.descriptor_ < 0) throw_errno(path, "open the file for writing");
  struct stat facts {};
  if (::fstat(file.descriptor_, &facts) != 0) throw_errno(path, "examine the file");
  if (!S_ISREG(facts.st_mode)) throw Error(path.string(), "is not a regular file. Remove it.");
  return file;
}

File File::open_folder(const std::filesystem::path& path) {
  const int descriptor = open_descriptor(path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) throw_errno(path, "open the folder");
  return {path, descriptor};
}

File::File(File&& other) noexcept : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

size_t File::read(char* buffer, size_t size) {
  for (;;) {
    const ssize_t count = ::read(descriptor_, buffer, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) throw DataError(path_.string(), concat("cannot read the file: ", reason(errno), "."));
  }
}

void File::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) throw_errno(path_, "write the file");
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void File::sync() {
  while (::fsync(descriptor_) != 0) {
    if (errno == EINVAL || errno == EROFS) return;  // a pipe, or a file system that cannot sync a folder
    if (errno != EINTR) throw_errno(path_, "write the file to disk");
  }
}

std::string read_file(const std::filesystem::path& path) try {
  File file = File::open_to_read(path);
  std::string content;
  size_t used = 0;
  for (;;) {
    if (used == content.size()) content.resize(std::max<size_t>(1 << 16, 2 * used));
    const size_t count = file.read(content.data() + used, content.size() - used);
    if (count == 0) break;
    used += count;
  }
  content.resize(used);
  return content;
} catch (const std::bad_alloc&) {
  std::error_code unknown;
  const auto size = static_cast<double>(std::filesystem::file_size(path, unknown));
  throw Error("memory", concat("out of memory: ", unknown ? "more was" : size_text(size) + " were",
                               " wanted for the content of ", path.string(), "."));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  StagedFile staged(path);
  staged.write(content);
  staged.commit();
}

}  // namespace normlab
