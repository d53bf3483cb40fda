#include "normlab/serve/activity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr double quiet_seconds = 120.0;  // after which a run on another machine counts as stopped

// What the holder wrote into the file; a link or a pipe in its place says nothing.
std::string content_of(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return "";
  char buffer[1024];
  const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
  ::close(descriptor);
  return {buffer, static_cast<size_t>(std::max<ssize_t>(count, 0))};
}

bool is_of_this_machine(const std::string& content) {
  utsname names{};
  if (::uname(&names) != 0) return true;
  for (const std::string& line : split(content, '\n'))
    if (line.starts_with("host ")) return line.substr(5) == names.nodename;
  return true;
}

}  // namespace

HeldLocks::HeldLocks() {
  // "1: FLOCK  ADVISORY  WRITE 1234 08:01:56789 0 EOF"
  std::ifstream list("/proc/locks");
  for (std::string line; std::getline(list, line);) {
    if (line.find("FLOCK") == std::string::npos) continue;
    const size_t last = line.rfind(':');
    if (last == std::string::npos) continue;
    const std::string rest = line.substr(last + 1);
    if (const auto inode = parse_integer(rest.substr(0, rest.find(' ')))) files_.insert(static_cast<uint64_t>(*inode));
  }
}

bool HeldLocks::in_use(const std::filesystem::path& folder, const std::string& name, double changed) const {
  const std::filesystem::path file = folder / name;
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  if (files_.contains(found.st_ino)) return true;
  return changed < quiet_seconds && !is_of_this_machine(content_of(file));
}

}  // namespace normlab
