#include "normlab/study/run/progress.h"

#include <gmock/gmock.h>

#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

class StudyProgressTest : public testing::Test {
 protected:
  StudyProgressTest()
      : plan(make_plan(read_study({parse_setting("norm.scheme=lp"), parse_setting("norm.p=[2,3]"),
                                   parse_setting("data.fold=[0,1]"), parse_setting("train.max_steps=100")}),
                       folder.path())) {}
  void at_step(const Trial& trial, const std::string& step) {
    std::filesystem::create_directories(trial.folder);
    write_file_atomically(trial.folder / "config.toml", to_toml(trial.config));
    write_file_atomically(trial.folder / "metrics.jsonl", "{\"step\":" + step + ",\"loss\":2.5}\n");
  }
  void finish(const Trial& trial) {
    at_step(trial, "100");
    write_file_atomically(
        trial.folder / "trial.json",
        "{\"outcome\":\"finished\",\"step\":100,\"val_loss\":1.5,\"parameters\":1,\"train_seconds\":1,"
        "\"train_cpu_seconds\":1,\"data_sha256\":\"\"}");
  }

  TemporaryFolder folder;
  Plan plan;
  const StudyProgress::Clock::time_point start = StudyProgress::Clock::now();
};

TEST_F(StudyProgressTest, TimeLeftGoesByTheOperationsOfThisSession) {
  finish(plan.trials[0]);
  at_step(plan.trials[1], "50");
  StudyProgress progress(plan, {100, 100, 100, 300}, start);
  EXPECT_EQ(progress.flops_left(), 450);
  EXPECT_THAT(progress.line(start + seconds(10)), Not(HasSubstr("left")));
  at_step(plan.trials[1], "100");  // 50 of 450 in ten seconds
  progress.update(plan.trials[1]);
  const std::string line = progress.line(start + seconds(10));
  EXPECT_THAT(line, HasSubstr("1 of 4 trials  33 %"));
  EXPECT_THAT(line, HasSubstr("elapsed 0:00:10  left 0:01:20"));
}

TEST_F(StudyProgressTest, TableHasVariantsRunningTrialsAndTheLine) {
  finish(plan.trials[1]);
  at_step(plan.trials[2], "20");
  StudyProgress progress(plan, {1, 1, 1, 1}, start);
  const std::vector<const Trial*> running = {&plan.trials[2]};
  const std::string table = progress.table(running, 24, start + seconds(1));
  EXPECT_THAT(table, HasSubstr("p = 2  \u2591"));
  EXPECT_THAT(table, HasSubstr("1/2  val 1.500\n"));
  EXPECT_THAT(table, HasSubstr("trial 3 (p = 2, fold 1, seed 1337)  step 20/100  loss 2.500\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  const std::string low = progress.table(running, 3, start + seconds(1));  // no room for the variants
  EXPECT_EQ(std::count(low.begin(), low.end(), '\n'), 1);
  EXPECT_THAT(low, HasSubstr("trial 3"));
}

}  // namespace
}  // namespace normlab
