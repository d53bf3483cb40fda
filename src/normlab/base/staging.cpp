// Staging: a staged entry is named .staging-<pid>-<n> and holds a flock while its writer lives.
#include "normlab/base/staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view staging_prefix = ".staging-";

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

fs::path staging_name(const fs::path& path) {
  static std::atomic<unsigned> count = 0;
  fs::path name;
  std::error_code ignored;
  do {
    name = parent_of(path) / concat(staging_prefix, ::getpid(), "-", count++);
  } while (fs::exists(fs::symlink_status(name, ignored)));
  return name;
}

fs::path make_staging_folder(const fs::path& path) {
  fs::path name = staging_name(path);
  if (::mkdir(name.c_str(), 0777) != 0) throw_errno(path, "create the folder");
  return name;
}

// Marks the entry as in use for as long as the file is open. On a file system without locks it stays unmarked,
// which matters only to another process that clears this folder at the same time.
File claimed(File file) {
  ::flock(file.descriptor(), LOCK_EX | LOCK_NB);
  return file;
}

bool is_claimed(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return taken;
}

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink()) continue;
    if (entry.is_directory()) File::open_folder(entry.path()).sync();
    if (entry.is_regular_file()) File::open_to_read(entry.path()).sync();
  }
  File::open_folder(folder).sync();
}

void rename_replacing_nothing(const fs::path& from, const fs::path& to) {
  int failed = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  if (failed && errno == EINVAL && !fs::exists(fs::symlink_status(to))) {
    failed = ::rename(from.c_str(), to.c_str());  // for file systems without RENAME_NOREPLACE
  }
  if (failed) throw_errno(to, "put the new folder in place");
}

}  // namespace

void sync_folder_of(const fs::path& path) { File::open_folder(parent_of(path)).sync(); }

StagedFile::StagedFile(const fs::path& final_path)
    : final_path_(final_path), path_(staging_name(final_path)), file_(claimed(File::create(path_, final_path))) {}

StagedFile::~StagedFile() {
  std::error_code ignored;
  if (!committed_) fs::remove(path_, ignored);
}

void StagedFile::commit() {
  file_.sync();
  if (::rename(path_.c_str(), final_path_.c_str()) != 0) throw_errno(final_path_, "replace the file");
  committed_ = true;
  sync_folder_of(final_path_);
}

StagedFolder::StagedFolder(const fs::path& final_path)
    : final_path_(final_path), path_(make_staging_folder(final_path)), claim_(claimed(File::open_folder(path_))) {}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(path_, ignored);
}

void StagedFolder::commit() {
  sync_tree(path_);
  rename_replacing_nothing(path_, final_path_);
  committed_ = true;
  sync_folder_of(final_path_);
}

void remove_stale_staging(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const bool staged = entry.path().filename().string().starts_with(staging_prefix);
    if (staged && !is_claimed(entry.path())) fs::remove_all(entry.path(), ignored);
  }
}

void remove_folder(const fs::path& path) {
  const fs::path doomed = staging_name(path);
  if (::rename(path.c_str(), doomed.c_str()) != 0) throw_errno(path, "remove the folder");
  std::error_code problem;
  fs::remove_all(doomed, problem);
  if (problem) throw Error(path.string(), concat("cannot remove the folder: ", problem.message(), "."));
}

void replace_symlink(const fs::path& link, const fs::path& target) {
  const fs::path staged = staging_name(link);
  if (::symlink(target.c_str(), staged.c_str()) != 0) throw_errno(link, "create the symbolic link");
  if (::rename(staged.c_str(), link.c_str()) != 0) {
    const int code = errno;
    ::unlink(staged.c_str());
    errno = code;
    throw_errno(link, "replace the symbolic link");
  }
  sync_folder_of(link);
}

}  // namespace normlab
