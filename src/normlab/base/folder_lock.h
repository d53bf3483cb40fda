// FolderLock: one process at a time works in a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "normlab/base/file.h"

namespace normlab {

// Held from construction to destruction, or to the death of the process. Both the folder and a file in it are locked:
// the file says who holds the lock and works over NFS, where folders cannot be locked; the lock of the folder holds
// even when the file is deleted.
class FolderLock {
 public:
  // Error "another process (pid N on HOST, since TIME) is using ..." when the lock is taken, and on a file system that
  // has no locks.
  explicit FolderLock(const std::filesystem::path& folder, std::string_view name = "run.lock");

 private:
  std::optional<File> folder_;  // nothing where folders cannot be locked
  File file_;
};

}  // namespace normlab
