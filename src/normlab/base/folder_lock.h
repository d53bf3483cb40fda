// FolderLock: one process at a time works in a folder.
#pragma once

#include <filesystem>
#include <string_view>

#include "normlab/base/file.h"

namespace normlab {

// Held from construction to destruction, or to the death of the process. The lock file stays: removing it would let
// two processes hold locks on two files of the same name.
class FolderLock {
 public:
  // Error "another process (pid N) is using ..." when the lock is taken.
  explicit FolderLock(const std::filesystem::path& folder, std::string_view name = "run.lock");

 private:
  File file_;
};

}  // namespace normlab
