// Durability: what is synced, in which order, and what happens when the disk refuses. A power cut loses what was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "sandbox.h"
#include "system_calls.h"

namespace normlab {

std::function<int(int)> on_fsync;
std::function<void()> before_flock;

}  // namespace normlab

// In place of the C library's.
extern "C" int fsync(int descriptor) {
  if (normlab::on_fsync) return normlab::on_fsync(descriptor);
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}
extern "C" int flock(int descriptor, int operation) noexcept {
  if (const auto hook = std::exchange(normlab::before_flock, nullptr)) hook();
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// Under which names files were synced, relative to a folder; a staged name as "staged".
class SyncedNames {
 public:
  explicit SyncedNames(const fs::path& folder)
      : folder_(fs::canonical(folder)), hook_(on_fsync, [this](int descriptor) {
          const fs::path name = fs::read_symlink(concat("/proc/self/fd/", descriptor)).lexically_relative(folder_);
          std::string shown;
          for (const fs::path& part : name)
            shown +=
                concat(shown.empty() ? "" : "/", part.string().starts_with(".staging-") ? "staged" : part.string());
          names.push_back(shown);
          return 0;
        }) {}

  std::vector<std::string> names;

 private:
  fs::path folder_;
  ScopedHook<std::function<int(int)>> hook_;
};

TEST(Durability, AFileIsSyncedBeforeItsRenameAndItsFolderAfter) {
  TemporaryFolder folder;
  SyncedNames synced(folder.path());
  write_file_atomically(folder / "file", "x");
  EXPECT_THAT(synced.names, ElementsAre("staged", "."));
}

TEST(Durability, AFolderIsSyncedWithAllThatIsInIt) {
  TemporaryFolder folder;
  StagedFolder staged(folder / "step");
  fs::create_directory(staged.path() / "sub");
  File::append(staged.path() / "a").write("1");
  File::append(staged.path() / "sub/b").write("2");
  fs::create_symlink("a", staged.path() / "link");
  SyncedNames synced(folder.path());
  staged.commit();
  ASSERT_EQ(synced.names.size(), 5u);
  EXPECT_EQ(synced.names.back(), ".");
  synced.names.pop_back();
  EXPECT_THAT(synced.names, UnorderedElementsAre("staged/a", "staged/sub", "staged/sub/b", "staged"));
}

TEST(Durability, ALinkIsSynced) {
  TemporaryFolder folder;
  SyncedNames synced(folder.path());
  replace_symlink(folder / "latest", "step");
  EXPECT_THAT(synced.names, ElementsAre("."));
}

TEST(Durability, AFailedSyncIsAnErrorAndKeepsTheOldFile) {
  TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  for (const int code : {EIO, ENOSPC}) {
    const ScopedHook hook(on_fsync, [code](int) { return errno = code, -1; });
    EXPECT_THAT([&] { write_file_atomically(folder / "file", "new"); },
                testing::ThrowsMessage<Error>(HasSubstr("cannot write the file to disk")));
    StagedFolder staged(folder / "step");
    EXPECT_THROW(staged.commit(), Error);
  }
  EXPECT_EQ(read_file(folder / "file"), "old");
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(Durability, AnInterruptedSyncIsTriedAgain) {
  TemporaryFolder folder;
  int calls = 0;
  const ScopedHook hook(on_fsync, [&](int) { return ++calls % 2 ? (errno = EINTR, -1) : 0; });
  write_file_atomically(folder / "file", "x");
  EXPECT_EQ(calls, 4);
}

TEST(Durability, FileSystemsThatCannotSyncFoldersWork) {
  TemporaryFolder folder;
  const ScopedHook hook(on_fsync, [](int) { return errno = EINVAL, -1; });
  write_file_atomically(folder / "file", "x");
  EXPECT_EQ(read_file(folder / "file"), "x");
}

}  // namespace
}  // namespace normlab
