// Which runs and studies some process works on, without taking a lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

namespace normlab {

// The locks of this machine at one moment, from /proc/locks.
class HeldLocks {
 public:
  HeldLocks();

  // Whether the lock file of a folder (base/folder_lock.h) is held. Of a process on another machine, whose locks do not
  // show here, the time of the last change decides: `changed` seconds ago.
  bool in_use(const std::filesystem::path& folder, const std::string& name, double changed) const;

 private:
  std::set<uint64_t> files_;  // by inode; device numbers differ between the list and stat() on some file systems
};

}  // namespace normlab
