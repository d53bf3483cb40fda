// FolderLock: flock on the folder, and on a file that tells the holder's process, host, boot and start.
#include "normlab/base/folder_lock.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

enum class Attempt { locked, taken, not_possible };

Attempt try_lock(const File& file) {
  while (::flock(file.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Attempt::taken;
    if (errno != EINTR) return Attempt::not_possible;
  }
  return Attempt::locked;
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "unknown";
}

std::string first_line_of(const fs::path& path) {
  std::error_code missing;
  return fs::is_regular_file(path, missing) ? trim(read_file(path)) : "unknown";
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  ::gmtime_r(&now, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string this_process() {
  return concat("pid ", ::getpid(), "\nhost ", host_name(), "\nstarted ", time_now(), "\nboot ",
                first_line_of("/proc/sys/kernel/random/boot_id"), "\n");
}

// " (pid 12 on host, since 2026-01-31T23:59:59Z)", or nothing when the file does not say.
std::string holder_of(File& file) {
  char buffer[1024];
  const std::string text(buffer, file.read(buffer, sizeof buffer));
  std::string process, host, started;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("pid ")) process = line;
    if (line.starts_with("host ")) host = concat(" on ", line.substr(5));
    if (line.starts_with("started ")) started = concat(", since ", line.substr(8));
  }
  return process.empty() ? "" : concat(" (", process, host, started, ")");
}

[[noreturn]] void refuse(const fs::path& folder, File& file) {
  throw Error(folder.string(),
              concat("another process", holder_of(file), " is using this folder. Wait for it to end, or stop it."));
}

bool is_still(const File& file) {
  struct stat open {
  }, named{};
  return ::fstat(file.descriptor(), &open) == 0 && ::lstat(file.path().c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, std::string_view name) : file_(File::open_own(folder / name)) {
  folder_.emplace(File::open_folder(folder));
  const Attempt of_folder = try_lock(*folder_);
  if (of_folder == Attempt::taken) refuse(folder, file_);
  if (of_folder == Attempt::not_possible) folder_.reset();
  const Attempt of_file = try_lock(file_);
  if (of_file == Attempt::taken) refuse(folder, file_);
  if (of_file == Attempt::not_possible && !folder_)
    throw Error(folder.string(), concat("this file system has no locks (", std::generic_category().message(errno),
                                        "), which keep two processes from writing to one folder. Choose a folder on "
                                        "another file system, or mount NFS with its lock service."));
  if (!is_still(file_)) throw Error(folder.string(), concat(name, " was replaced while it was locked. Try again."));
  if (::ftruncate(file_.descriptor(), 0) != 0) throw_errno(file_.path(), "empty the file");
  file_.write(this_process());
}

}  // namespace normlab
