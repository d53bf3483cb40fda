// FolderLock: one holder, told by its process id, released by its death.
#include "normlab/base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

std::string refusal(const std::filesystem::path& folder) {
  try {
    const FolderLock lock(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(FolderLock, SecondProcessIsRefusedAndToldTheHolder) {
  TemporaryFolder folder;
  std::optional<FolderLock> lock(folder.path());
  const std::string expected = concat("[", folder.path().string(), "] another process (pid ", ::getpid(),
                                      ") is using this folder. Wait for it to end, or stop it.");
  // The child inherits the lock's descriptor, but opens the file anew, as another process would.
  EXPECT_TRUE(exited_with(run_in_child([&] { return refusal(folder.path()) == expected ? 0 : 1; }), 0));
  EXPECT_EQ(refusal(folder.path()), expected);
  lock.reset();
  EXPECT_EQ(refusal(folder.path()), "");
}

TEST(FolderLock, EndsWithItsProcess) {
  TemporaryFolder folder;
  const int status = run_in_child([&]() -> int {
    const FolderLock lock(folder.path());
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_TRUE(killed_by(status, SIGKILL));
  const FolderLock lock(folder.path());
  EXPECT_EQ(read_file(folder / "run.lock"), concat(::getpid(), "\n"));
}

TEST(FolderLock, NeedsAFolder) {
  TemporaryFolder folder;
  EXPECT_THAT(refusal(folder / "missing"), testing::HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace normlab
