#include "normlab/study/run/trial.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/folder_lock.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class TrialFolder : public testing::Test {
 protected:
  TrialFolder() {
    plan = make_plan(read_study({parse_setting("norm.scheme=lp"), parse_setting("norm.p=[2,3]")}), folder.path());
    trial = plan.trials[0];
    std::filesystem::create_directories(trial.folder);
  }
  void write(const char* name, const std::string& content) { write_file_atomically(trial.folder / name, content); }
  void finish(const char* outcome = "finished") {
    write("config.toml", to_toml(trial.config));
    write("metrics.jsonl",
          "{\"step\":0,\"val_loss\":4.5}\n{\"step\":20,\"loss\":1.5}\n{\"step\":20,\"val_loss\":1.25}\n");
    write("trial.json", std::string("{\"outcome\":\"") + outcome +
                            "\",\"step\":20,\"val_loss\":1.25,\"best_loss\":1.125,\"parameters\":9,"
                            "\"train_seconds\":2.5,\"train_cpu_seconds\":2.25,\"data_sha256\":\"abc\"}");
  }
  TrialStatus status() const { return read_trial(trial).status; }

  TemporaryFolder folder;
  Plan plan;
  Trial trial;
};

TEST_F(TrialFolder, StatusFromWhatIsThere) {
  EXPECT_EQ(status(), TrialStatus::missing);
  write("run.lock", "1\n");
  std::filesystem::create_directory(trial.folder / "checkpoints");
  EXPECT_EQ(status(), TrialStatus::missing);
  write("config.toml", to_toml(trial.config));
  EXPECT_EQ(status(), TrialStatus::started);
  finish("diverged");
  EXPECT_EQ(status(), TrialStatus::diverged);
  finish();
  EXPECT_EQ(status(), TrialStatus::finished);
  std::filesystem::remove_all(trial.folder);
  EXPECT_EQ(status(), TrialStatus::missing);
}

TEST_F(TrialFolder, RecordOfAFinishedTrial) {
  finish();
  const TrialRecord record = read_trial(trial);
  EXPECT_TRUE(record.ended());
  EXPECT_EQ(record.step, 20);
  EXPECT_EQ(record.val_loss, 1.25);
  EXPECT_EQ(record.best_loss, 1.125);
  EXPECT_EQ(record.parameters, 9);
  EXPECT_EQ(record.train_seconds, 2.5);
  EXPECT_EQ(record.train_cpu_seconds, 2.25);
  EXPECT_EQ(record.data_sha256, "abc");
}

TEST_F(TrialFolder, DamageIsNotTakenForAResult) {
  const auto damaged_by = [&](auto damage) {
    finish();
    damage();
    return status() == TrialStatus::damaged;
  };
  EXPECT_TRUE(damaged_by([&] { write("trial.json", "{"); }));
  EXPECT_TRUE(damaged_by([&] { write("trial.json", "{\"outcome\":\"finished\"}"); }));
  EXPECT_TRUE(damaged_by([&] { write("trial.json", "[]"); }));
  EXPECT_TRUE(damaged_by([&] { finish("splendid"); }));
  EXPECT_TRUE(damaged_by([&] { std::filesystem::remove(trial.folder / "metrics.jsonl"); }));
  EXPECT_TRUE(damaged_by([&] { write("metrics.jsonl", "{\"step\":10,\"val_loss\":1.25}\n"); }));
  EXPECT_TRUE(damaged_by([&] { std::filesystem::remove(trial.folder / "config.toml"); }));
  std::filesystem::remove(trial.folder / "trial.json");
  EXPECT_EQ(status(), TrialStatus::damaged);  // metrics without a configuration
}

// Reading these as whole numbers is undefined.
TEST_F(TrialFolder, CountsOutOfRangeAreDamage) {
  for (const char* step : {"1e300", "-1", "20.5", "18446744073709551615", "\"20\""}) {
    finish();
    write("trial.json", std::string("{\"outcome\":\"finished\",\"parameters\":9,\"train_seconds\":1,"
                                    "\"train_cpu_seconds\":1,\"data_sha256\":\"abc\",\"step\":") +
                            step + "}");
    EXPECT_EQ(status(), TrialStatus::damaged) << step;
  }
}

TEST_F(TrialFolder, GlanceReadsTheEndOfTheMetrics) {
  EXPECT_EQ(glance(trial).step, 0);
  std::string rows = "{\"step\":1,\"val_loss\":9}\n";
  for (int step = 1; step <= 2000; ++step) rows += "{\"step\":" + std::to_string(step) + ",\"loss\":\"nan\"}\n";
  write("metrics.jsonl", rows + "{\"step\":2000,\"val_loss\":1.5}\n{\"step\":2010,\"loss\":2.5}\n{\"step\":20");
  const Glance seen = glance(trial);
  EXPECT_EQ(seen.step, 2010);
  EXPECT_EQ(seen.loss, 2.5);
  EXPECT_EQ(seen.val_loss, 1.5);
}

TEST_F(TrialFolder, AnotherConfigurationIsRefusedUnlessItLeavesTheResultsAlone) {
  EXPECT_NO_THROW(require_same_trial(trial));  // not begun
  finish();
  trial.config.train.threads = 8;
  trial.config.train.save_every = 3;
  EXPECT_NO_THROW(require_same_trial(trial));
  trial.config.train.max_steps += 1;
  EXPECT_THAT([&] { require_same_trial(trial); },
              ThrowsMessage<UsageError>(HasSubstr("train.max_steps is 5000 there")));
}

TEST_F(TrialFolder, CrashesAreRecordedUnlessTheTrialRunsElsewhereOrHasEnded) {
  record_crash(trial, "out of luck");
  EXPECT_EQ(status(), TrialStatus::crashed);
  EXPECT_EQ(read_trial(trial).message, "out of luck");
  finish();
  record_crash(trial, "late");
  EXPECT_EQ(status(), TrialStatus::finished);
  std::filesystem::remove(trial.folder / "trial.json");
  const FolderLock elsewhere(trial.folder);
  record_crash(trial, "in use");
  EXPECT_EQ(status(), TrialStatus::started);
}

}  // namespace
}  // namespace normlab
