// The folder of a run: who may use it, its checkpoints, and what kills leave.
#include "normlab/record/run_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "sandbox.h"
#include "system_calls.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Failure, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no error";
}

void save(const RunDir& run, int64_t step, const std::string& state = "{}") {
  StagedFolder staged(run.checkpoint(step));
  write_file_atomically(staged.path() / "model.safetensors", "weights");
  write_file_atomically(staged.path() / "state.json", state);
  staged.commit();
}

std::vector<int64_t> steps(const RunDir& run) {
  std::vector<int64_t> found;
  for (const Checkpoint& each : run.checkpoints()) found.push_back(each.step);
  return found;
}

class Run : public testing::Test {
 protected:
  RunDir started() {
    RunDir run = RunDir::create(path);
    write_file_atomically(run.config(), "p = 3\n");
    return run;
  }
  TemporaryFolder folder;
  const fs::path path = folder / "runs/first";
};

TEST_F(Run, CreateMakesTheFolderAndItsPaths) {
  const RunDir run = RunDir::create(path);
  EXPECT_TRUE(fs::is_directory(path / "checkpoints"));
  EXPECT_EQ(run.path(), path);
  EXPECT_EQ(run.config(), path / "config.toml");
  EXPECT_EQ(run.manifest(), path / "manifest.json");
  EXPECT_EQ(run.metrics(), path / "metrics.jsonl");
  EXPECT_EQ(run.checkpoint(250), path / "checkpoints/step-000250");
  EXPECT_EQ(run.checkpoint(1234567), path / "checkpoints/step-1234567");
}

TEST_F(Run, CreateRefusesAFolderInUse) {
  started();
  EXPECT_THAT(message_of<UsageError>([&] { RunDir::create(path); }),
              HasSubstr("holds another run; choose another --out"));
  fs::create_directories(folder / "other");
  write_file_atomically(folder / "other/letter.txt", "dear");
  EXPECT_THAT(message_of<UsageError>([&] { RunDir::create(folder / "other"); }),
              HasSubstr("is not empty, and not a run"));
  EXPECT_THAT(message_of<UsageError>([&] { RunDir::create(folder / "other/letter.txt"); }), HasSubstr("is a file"));
  EXPECT_EQ(fs::exists(folder / "other/run.lock"), false);
  EXPECT_THAT(message_of<Error>([&] { RunDir::create(folder / "other/letter.txt/run"); }), HasSubstr("cannot create"));
}

TEST_F(Run, CreateTakesAnEmptyFolderOrOneLeftByAKilledStart) {
  fs::create_directories(path);
  const int status = run_in_child([&]() -> int {
    const RunDir run = RunDir::create(path);
    StagedFile config(run.config());
    config.write("p =");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_TRUE(killed_by(status, SIGKILL));
  const RunDir run = RunDir::create(path);
  EXPECT_FALSE(fs::exists(run.config()));
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path)) ++entries;
  EXPECT_EQ(entries, 2u);  // checkpoints/ and run.lock
}

TEST_F(Run, OneWriterManyReaders) {
  {
    const RunDir writer = started();
    EXPECT_THAT(message_of<Error>([&] { RunDir::open_locked(path); }), HasSubstr(concat("(pid ", ::getpid(), " on ")));
    EXPECT_EQ(RunDir::open(path).path(), path);
  }
  const RunDir next = RunDir::open_locked(path);
  EXPECT_THROW(RunDir::open_locked(path), Error);
}

TEST_F(Run, TwoStartsAtOnceGiveOneRun) {
  const RunDir first = RunDir::create(path);  // has not written its config yet
  EXPECT_THAT(message_of<Error>([&] { RunDir::create(path); }), HasSubstr("another process"));
}

TEST_F(Run, OpenNeedsARun) {
  for (const char* name : {"", "missing"}) {
    EXPECT_THAT(message_of<DataError>([&] { RunDir::open(folder / name); }), HasSubstr("is not a run"));
    EXPECT_THROW(RunDir::open_locked(folder / name), DataError);
  }
}

TEST_F(Run, CheckpointsAreSortedAndComplete) {
  const RunDir run = started();
  EXPECT_FALSE(run.latest() || run.best());
  for (const int64_t step : {1000000, 250, 999999}) save(run, step);
  for (const char* name : {"step-7", "step-", "step-00025x", "step--00001", "notes"}) {
    fs::copy(run.checkpoint(250), path / "checkpoints" / name);
  }
  StagedFolder unfinished(run.checkpoint(750));
  write_file_atomically(unfinished.path() / "model.safetensors", "");
  write_file_atomically(unfinished.path() / "state.json", "{}");
  EXPECT_THAT(steps(run), ElementsAre(250, 999999, 1000000));
  EXPECT_EQ(run.latest()->step, 1000000);
  fs::remove(run.checkpoint(250) / "state.json");  // what is damaged is listed too, for its reader to complain
  EXPECT_THAT(steps(run), ElementsAre(250, 999999, 1000000));
}

// It would erase the rows.
TEST_F(Run, ARunWithRowsAndWithoutCheckpointsIsNotRestarted) {
  const fs::path checkpoints = path / "checkpoints";
  {
    const RunDir run = started();
    save(run, 250);
    write_file_atomically(run.metrics(), "{\"step\":250}\n");
  }
  const auto refused = [&] { return message_of<DataError>([&] { RunDir::open_locked(path); }); };
  fs::rename(checkpoints, folder / "moved");
  EXPECT_THAT(refused(), HasSubstr("checkpoints] is missing, though metrics.jsonl has rows"));
  EXPECT_FALSE(fs::exists(checkpoints));
  fs::create_directory(checkpoints);
  EXPECT_THAT(refused(), HasSubstr("holds no checkpoint, though"));
  fs::remove(checkpoints);
  write_file_atomically(checkpoints, "");
  EXPECT_THAT(refused(), HasSubstr("is not a folder"));
  fs::remove(checkpoints);
  fs::create_symlink("/not/mounted", checkpoints);
  EXPECT_THAT(refused(), HasSubstr("is missing"));
  fs::remove(checkpoints);
  fs::create_directory_symlink(folder / "moved", checkpoints);
  EXPECT_THAT(steps(RunDir::open_locked(path)), ElementsAre(250));
  fs::remove(checkpoints);
  write_file_atomically(path / "metrics.jsonl", "");  // killed before its first checkpoint: there is nothing to lose
  EXPECT_THAT(steps(RunDir::open_locked(path)), ElementsAre());
  EXPECT_TRUE(fs::is_directory(checkpoints));
}

TEST_F(Run, WhatIsSetAsideIsNoCheckpointAnyMore) {
  RunDir run = started();
  for (const int64_t step : {250, 500, 750}) save(run, step);
  run.set_latest(750);
  run.set_best(500);
  EXPECT_EQ(run.set_aside(*run.latest(), "damaged"), path / "checkpoints/damaged-step-000750");
  save(run, 750);
  EXPECT_EQ(run.set_aside(*run.latest(), "damaged"), path / "checkpoints/damaged-step-000750-2");
  run.relink(500, 500);
  EXPECT_EQ(fs::read_symlink(path / "checkpoints/latest"), "step-000500");
  EXPECT_EQ(run.best()->step, 500);
  run.set_aside(*run.latest(), "unlogged");
  run.relink(250, 250);
  EXPECT_EQ(run.best()->step, 250);
  save(run, 1000);
  run.set_best(1000);
  run.set_aside(*run.latest(), "damaged");
  run.relink(250, 100);  // a checkpoint that is gone
  EXPECT_FALSE(fs::exists(fs::symlink_status(path / "checkpoints/best")));
  run.apply_retention(1, 0);
  EXPECT_TRUE(fs::exists(path / "checkpoints/damaged-step-000750/state.json"));  // the user's to delete
  EXPECT_THAT(steps(run), ElementsAre(250));
}

TEST_F(Run, LinksAreRelativeAndMove) {
  RunDir run = started();
  save(run, 250, R"({"val_loss": 1.5})");
  save(run, 500, R"({"val_loss": "nan"})");
  run.set_latest(250);
  run.set_best(250);
  run.set_latest(500);
  EXPECT_EQ(fs::read_symlink(path / "checkpoints/latest"), "step-000500");
  EXPECT_EQ(fs::read_symlink(path / "checkpoints/best"), "step-000250");
  EXPECT_EQ(run.best()->val_loss, 1.5);
  EXPECT_EQ(run.latest()->val_loss, std::nullopt);
  fs::rename(path, folder / "moved");
  EXPECT_TRUE(fs::exists(folder / "moved/checkpoints/latest/state.json"));
  EXPECT_THROW(RunDir::open(folder / "moved").set_latest(750), Error);
}

TEST_F(Run, LatestIsTheNewestAlsoWhenTheLinkWasNotMovedInTime) {
  RunDir run = started();
  save(run, 250);
  run.set_latest(250);
  save(run, 500);
  EXPECT_EQ(run.latest()->step, 500);
}

TEST_F(Run, RetentionKeepsLastBestAndLinked) {
  RunDir run = started();
  const char* losses[] = {"1.9", "1.2", "1.5", "1.1", "\"nan\"", "1.8", "1.7"};
  for (int i = 0; i < 7; ++i) save(run, 100 * (i + 1), concat("{\"val_loss\": ", losses[i], "}"));
  run.set_best(100);  // by another measure than the loss
  run.set_latest(700);
  run.apply_retention(2, 2);
  EXPECT_THAT(steps(run), ElementsAre(100, 200, 400, 600, 700));
  run.apply_retention(0, 0);
  EXPECT_THAT(steps(run), ElementsAre(100, 700));
  EXPECT_TRUE(fs::exists(path / "checkpoints/best/state.json"));
  run.apply_retention(10, 10);
  EXPECT_THAT(steps(run), ElementsAre(100, 700));
}

TEST_F(Run, RetentionNeverRemovesTheNewest) {
  RunDir run = started();
  save(run, 100);
  save(run, 200);
  run.apply_retention(0, 0);
  EXPECT_THAT(steps(run), ElementsAre(200));
}

TEST_F(Run, KillInsideACheckpointLeavesTheOthers) {
  const int status = run_in_child([&]() -> int {
    RunDir run = started();
    save(run, 250);
    run.set_latest(250);
    StagedFolder staged(run.checkpoint(500));
    write_file_atomically(staged.path() / "model.safetensors", "half");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_TRUE(killed_by(status, SIGKILL));
  EXPECT_THAT(steps(RunDir::open(path)), ElementsAre(250));
  const RunDir run = RunDir::open_locked(path);
  EXPECT_THAT(steps(run), ElementsAre(250));
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(path / "checkpoints")) ++entries;
  EXPECT_EQ(entries, 2u);  // step-000250 and latest: the scraps are gone
  save(run, 500);
  EXPECT_EQ(run.latest()->step, 500);
}

// Saves, links and removes checkpoints as fast as it can, until killed; tells each on the pipe.
[[noreturn]] void save_for_ever(const fs::path& path, int pipe) noexcept {
  RunDir run = RunDir::open_locked(path);
  const auto last = run.latest();
  for (int64_t step = last ? last->step + 1 : 1;; ++step) {
    save(run, step, concat("{\"val_loss\": ", step % 7, "}"));
    run.set_latest(step);
    if (step % 7 == 0) run.set_best(step);
    run.apply_retention(2, 1);
    if (::write(pipe, "x", 1) != 1) ::_exit(1);
  }
}

TEST_F(Run, KillAtAnyTimeLeavesWholeCheckpoints) {
  started();
  int saved[2];
  ASSERT_EQ(::pipe(saved), 0);
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const pid_t child = ::fork();
    if (child == 0) save_for_ever(path, saved[1]);
    pollfd waiting{saved[0], POLLIN, 0};
    const int answers = ::poll(&waiting, 1, 20000);
    ::usleep(static_cast<useconds_t>(4000 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ASSERT_EQ(answers, 1);
    char drained[1000];
    ASSERT_GT(::read(saved[0], drained, sizeof drained), 0);
    for (const auto& entry : fs::directory_iterator(path / "checkpoints")) {
      if (entry.path().filename().string().starts_with(".staging-")) continue;
      EXPECT_EQ(read_file(entry.path() / "model.safetensors"), "weights") << entry.path();
      EXPECT_THAT(read_file(entry.path() / "state.json"), HasSubstr("val_loss")) << entry.path();
    }
  }
  const RunDir run = RunDir::open_locked(path);
  ASSERT_TRUE(run.latest());
  EXPECT_GE(run.latest()->step, rounds);
  for (const auto& entry : fs::directory_iterator(path / "checkpoints")) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".staging-")) << entry.path();
  }
}

// The folder is empty at first, but when the lock is had, another process has made its run there and gone.
TEST(RunDir, OfTwoCreatorsTheSlowerIsRefused) {
  TemporaryFolder folder;
  const ScopedHook hook(before_flock, [&] { write_file_atomically(folder / "run/config.toml", "theirs"); });
  EXPECT_THROW(RunDir::create(folder / "run"), UsageError);
  EXPECT_EQ(read_file(folder / "run/config.toml"), "theirs");
}

TEST(RunDir, NamesOfCheckpointsTellTheirStep) {
  EXPECT_EQ(checkpoint_step("runs/a/checkpoints/step-000250"), 250);
  EXPECT_EQ(checkpoint_step("step-1234567"), 1234567);
  for (const char* name : {"latest", "step-", "step-25", "step--00001", "exported"})
    EXPECT_EQ(checkpoint_step(name), std::nullopt) << name;
}

}  // namespace
}  // namespace normlab
