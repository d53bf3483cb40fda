// How a run stands, from its files alone.
#include "normlab/serve/run_summary.h"

#include <gmock/gmock.h>

#include "normlab/base/file.h"
#include "normlab/base/folder_lock.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

class RunSummaryTest : public testing::Test {
 protected:
  RunSummaryTest() { fs::create_directories(run); }
  void write(const char* name, const std::string& content) const { write_file_atomically(run / name, content); }
  RunSummary look() { return runs.of(run, HeldLocks()); }

  TemporaryFolder outer;
  const fs::path run = fs::canonical(outer.path()) / "served/run";
  const std::string config = "[norm]\nscheme = \"qknorm\"\n[train]\nmax_steps = 100\nearly_stop = 2\n";
  const ServedFolder folder = ServedFolder((fs::create_directories(run), outer / "served"));
  RunSummaries runs = RunSummaries(folder);
};

TEST_F(RunSummaryTest, FollowsTheRows) {
  EXPECT_EQ(look().state, RunState::waiting);
  write("config.toml", config);
  EXPECT_EQ(look().state, RunState::stopped);
  write("metrics.jsonl", "{\"step\":0,\"val_loss\":4}\n{\"step\":40,\"val_loss\":2,\"train_seconds\":8}\n");
  RunSummary seen = look();
  EXPECT_EQ(seen.state, RunState::stopped);
  EXPECT_EQ(seen.step, 40);
  EXPECT_EQ(seen.best_loss, 2.0);
  EXPECT_EQ(seen.share(), 0.4);
  EXPECT_EQ(seen.scheme, "qknorm");
  EXPECT_EQ(seen.seconds_left(), std::nullopt);
  write("metrics.jsonl", "{\"step\":40,\"val_loss\":2,\"train_seconds\":8}\n{\"step\":100,\"val_loss\":3}\n");
  EXPECT_EQ(look().state, RunState::finished);
}

TEST_F(RunSummaryTest, SeesALockWithoutTakingIt) {
  write("config.toml", config);
  write("metrics.jsonl", "{\"step\":40,\"val_loss\":2,\"train_seconds\":8}\n");
  {
    const FolderLock lock(run);
    const RunSummary seen = look();
    EXPECT_EQ(seen.state, RunState::running);
    EXPECT_EQ(seen.seconds_left(), 12.0);  // 60 steps of 0.2 s
  }
  EXPECT_EQ(look().state, RunState::stopped);
}

TEST_F(RunSummaryTest, KnowsHowARunCanEnd) {
  write("config.toml", config);
  write("metrics.jsonl", "{\"step\":1,\"val_loss\":2}\n{\"step\":2,\"val_loss\":3}\n{\"step\":3,\"val_loss\":3}\n");
  EXPECT_EQ(look().state, RunState::finished);  // early stop
  write("metrics.jsonl", "{\"step\":1,\"val_loss\":2}\n{\"step\":2,\"loss\":\"nan\",\"diverged\":true}\n");
  EXPECT_EQ(look().state, RunState::diverged);
  write("metrics.jsonl", "{\"step\":1,\"val_loss\":2}\n");
  write("trial.json", "{\"outcome\":\"crashed\",\"message\":\"no memory\"}");
  EXPECT_EQ(look().state, RunState::crashed);
  EXPECT_EQ(look().problem, "no memory");
}

TEST_F(RunSummaryTest, DamageIsSaidAndLinksOutsideAreNotRead) {
  write("config.toml", config);
  write("metrics.jsonl", "{\"step\":1,\"val_loss\":2}\nnonsense\n{\"step\":2}\n");
  EXPECT_EQ(look().state, RunState::damaged);
  EXPECT_THAT(look().problem, testing::HasSubstr("line 2"));
  write_file_atomically(outer / "secret", "{\"step\":1,\"val_loss\":1.25}\n");
  fs::remove(run / "metrics.jsonl");
  fs::create_symlink(outer / "secret", run / "metrics.jsonl");
  EXPECT_EQ(look().best_loss, std::nullopt);
  EXPECT_THAT(look().problem, testing::HasSubstr("link"));
}

}  // namespace
}  // namespace normlab
