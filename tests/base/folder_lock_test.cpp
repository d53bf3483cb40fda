// FolderLock: one holder, told by its process id, released by its death.
#include "normlab/base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

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
  char host[256] = "";
  ::gethostname(host, sizeof host);
  const std::string start = concat("[", folder.path().string(), "] another process (pid ", ::getpid(), " on ", host,
                                   ", since 2");  // the time ends with Z
  const auto refused = [&] {
    const std::string message = refusal(folder.path());
    return message.starts_with(start) && message.ends_with("Z) is using this folder. Wait for it to end, or stop it.");
  };
  // The child inherits the lock's descriptor, but opens the file anew, as another process would.
  EXPECT_TRUE(exited_with(run_in_child([&] { return refused() ? 0 : 1; }), 0));
  EXPECT_TRUE(refused()) << refusal(folder.path());
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
  EXPECT_THAT(read_file(folder / "run.lock"),
              testing::MatchesRegex(concat("pid ", ::getpid(), "\nhost .+\nstarted .+Z\nboot .+\n")));
}

TEST(FolderLock, HoldsWhenItsFileIsDeleted) {
  TemporaryFolder folder;
  const FolderLock lock(folder.path());
  std::filesystem::remove(folder / "run.lock");
  EXPECT_THAT(refusal(folder.path()), testing::HasSubstr("another process"));
}

TEST(FolderLock, WritesThroughNoSymbolicLink) {
  TemporaryFolder folder;
  write_file_atomically(folder / "precious", "thesis");
  std::filesystem::create_directory(folder / "run");
  std::filesystem::create_symlink("../precious", folder / "run/run.lock");
  EXPECT_THAT(refusal(folder / "run"), testing::HasSubstr("is a symbolic link"));
  EXPECT_EQ(read_file(folder / "precious"), "thesis");
}

TEST(FolderLock, ReadsNoPipe) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "run.lock").c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder.path()), testing::HasSubstr("not a regular file"));
}

TEST(FolderLock, NeedsAFolder) {
  TemporaryFolder folder;
  EXPECT_THAT(refusal(folder / "missing"), testing::HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace normlab
