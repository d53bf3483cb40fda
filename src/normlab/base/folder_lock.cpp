// FolderLock: flock on a file that tells the holder's process id.
#include "normlab/base/folder_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

FolderLock::FolderLock(const std::filesystem::path& folder, std::string_view name)
    : file_(File::append(folder / name)) {
  if (::flock(file_.descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw_errno(file_.path(), "lock the file");
    const std::string holder = trim(read_file(file_.path()));
    throw Error(folder.string(), concat("another process", holder.empty() ? "" : concat(" (pid ", holder, ")"),
                                        " is using this folder. Wait for it to end, or stop it."));
  }
  if (::ftruncate(file_.descriptor(), 0) != 0) throw_errno(file_.path(), "empty the file");
  file_.write(concat(::getpid(), "\n"));
}

}  // namespace normlab
