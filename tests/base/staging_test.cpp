// Staging: all or nothing, also when the writer is killed.
#include "normlab/base/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <csignal>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

TEST(StagedFolder, CommitPutsEverythingInPlace) {
  TemporaryFolder folder;
  StagedFolder staged(folder / "step");
  write_file_atomically(staged.path() / "a", "1");
  fs::create_directory(staged.path() / "sub");
  write_file_atomically(staged.path() / "sub/b", "2");
  EXPECT_EQ(staged.path().parent_path(), folder.path());
  EXPECT_FALSE(fs::exists(folder / "step"));
  staged.commit();
  EXPECT_FALSE(fs::exists(staged.path()));
  EXPECT_EQ(read_file(folder / "step/a") + read_file(folder / "step/sub/b"), "12");
}

TEST(StagedFolder, VanishesWithoutCommit) {
  TemporaryFolder folder;
  {
    StagedFolder staged(folder / "step");
    write_file_atomically(staged.path() / "a", "1");
  }
  EXPECT_EQ(folder.count_entries(), 0u);
}

TEST(StagedFolder, ReplacesNothing) {
  TemporaryFolder folder;
  fs::create_directory(folder / "step");  // an empty folder is what a plain rename would replace
  {
    StagedFolder staged(folder / "step");
    write_file_atomically(staged.path() / "a", "1");
    EXPECT_THROW(staged.commit(), Error);
  }
  EXPECT_TRUE(fs::is_empty(folder / "step"));
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(StagedFolder, RelativePathsWork) {
  TemporaryFolder folder;
  const int status = run_in_child([&] {
    fs::current_path(folder.path());
    StagedFolder staged("step");
    staged.commit();
    write_file_atomically("file", "x");
    return fs::is_directory(folder / "step") && read_file(folder / "file") == "x" ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0));
}

TEST(Staging, LeftoversOfKilledProcessesAreRemoved) {
  TemporaryFolder folder;
  const int status = run_in_child([&]() -> int {
    StagedFolder staged(folder / "step");
    write_file_atomically(staged.path() / "a", "1");
    StagedFile file(folder / "file");
    file.write("half");
    fs::create_symlink("nowhere", folder / ".staging-1-1");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_TRUE(killed_by(status, SIGKILL));
  EXPECT_FALSE(fs::exists(folder / "step"));
  EXPECT_FALSE(fs::exists(folder / "file"));
  EXPECT_EQ(folder.count_entries(), 4u);
  write_file_atomically(folder / "kept", "x");
  remove_stale_staging(folder.path());
  EXPECT_EQ(folder.count_entries(), 1u);
  remove_stale_staging(folder / "missing");
}

TEST(Staging, WhatIsBeingWrittenStays) {
  TemporaryFolder folder;
  StagedFolder staged(folder / "step");
  StagedFile file(folder / "file");
  file.write("content");
  remove_stale_staging(folder.path());
  staged.commit();
  file.commit();
  EXPECT_TRUE(fs::is_directory(folder / "step"));
  EXPECT_EQ(read_file(folder / "file"), "content");
}

TEST(Staging, NamesOfLeftoversAreNotReused) {
  TemporaryFolder folder;
  const StagedFolder first(folder / "first");
  const auto last = parse_integer(split(first.path().filename().string(), '-').back());
  ASSERT_TRUE(last);
  for (const int next : {1, 2, 3}) fs::create_directory(folder / concat(".staging-", ::getpid(), "-", *last + next));
  const StagedFolder second(folder / "second");
  EXPECT_EQ(second.path(), folder / concat(".staging-", ::getpid(), "-", *last + 4));
}

TEST(RemoveFolder, RemovesAll) {
  TemporaryFolder folder;
  fs::create_directories(folder / "step/sub");
  write_file_atomically(folder / "step/sub/a", "1");
  remove_folder(folder / "step");
  EXPECT_EQ(folder.count_entries(), 0u);
  EXPECT_THROW(remove_folder(folder / "step"), Error);
}

TEST(RemoveFolder, LosesItsNameBeforeItLosesAFile) {
  TemporaryFolder folder;
  fs::create_directory(folder / "step");
  write_file_atomically(folder / "step/a", "1");
  const int watch = ::inotify_init1(IN_NONBLOCK);
  ASSERT_GE(::inotify_add_watch(watch, (folder / "step").c_str(), IN_MOVE_SELF | IN_DELETE), 0);
  remove_folder(folder / "step");
  alignas(inotify_event) char events[4096];
  ASSERT_GT(::read(watch, events, sizeof events), 0);
  EXPECT_EQ(reinterpret_cast<const inotify_event*>(events)->mask & (IN_MOVE_SELF | IN_DELETE), IN_MOVE_SELF + 0u);
  ::close(watch);
}

TEST(ReplaceSymlink, MakesAndMovesTheLink) {
  TemporaryFolder folder;
  replace_symlink(folder / "latest", "step-1");
  replace_symlink(folder / "latest", "step-2");
  EXPECT_EQ(fs::read_symlink(folder / "latest"), "step-2");
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(ReplaceSymlink, LeavesAFolderOfThatNameAlone) {
  TemporaryFolder folder;
  fs::create_directory(folder / "latest");
  EXPECT_THROW(replace_symlink(folder / "latest", "step-1"), Error);
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(folder / "latest")));
  EXPECT_EQ(folder.count_entries(), 1u);
}

}  // namespace
}  // namespace normlab
