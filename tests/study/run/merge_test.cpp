#include "normlab/study/run/merge.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/folder_lock.h"
#include "normlab/study/run/trial.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Merge : public testing::Test {
 protected:
  Plan study(const std::string& name, const std::vector<std::string>& settings) const {
    std::vector<Setting> all = {parse_setting("norm.scheme=lp"), parse_setting("norm.p=[2,3]")};
    for (const std::string& each : settings) all.push_back(parse_setting(each));
    StudySpec spec = read_study(all);
    spec.version = NORMLAB_VERSION;
    fs::create_directories(folder.path() / name);
    write_file_atomically(folder.path() / name / "study.toml", to_toml(spec));
    return load_plan(folder.path() / name);
  }
  static void begin(const Trial& trial, int step) {
    fs::create_directories(trial.folder);
    write_file_atomically(trial.folder / "config.toml", to_toml(trial.config));
    write_file_atomically(trial.folder / "metrics.jsonl", "{\"step\":" + std::to_string(step) + ",\"loss\":4.5}\n");
  }
  static void finish(const Trial& trial, double loss = 1.5, const std::string& text = "abc") {
    begin(trial, 20);
    write_record(trial, {.status = TrialStatus::finished, .step = 20, .val_loss = loss, .data_sha256 = text});
  }
  static void finish_all(const Plan& plan) {
    for (const Trial& trial : plan.trials) finish(trial);
  }
  MergedStudy merge() const { return merge_studies({folder.path() / "a", folder.path() / "b"}, out()); }
  fs::path out() const { return folder.path() / "out"; }
  auto refused(const char* why) const { return ThrowsMessage<Error>(HasSubstr(why)); }

  TemporaryFolder folder;
};

TEST_F(Merge, FoldsAndValuesOfBoth) {
  finish_all(study("a", {"data.fold=[0,1]"}));
  finish_all(study("b", {"data.fold=2"}));
  const MergedStudy merged = merge();
  EXPECT_EQ(merged.trials, 6u);
  EXPECT_EQ(merged.ended, 6u);
  const Plan plan = load_plan(out());
  EXPECT_THAT(plan.folds, ElementsAre(0, 1, 2));
  for (const Trial& trial : plan.trials) {
    EXPECT_EQ(read_trial(trial).status, TrialStatus::finished);
    EXPECT_NO_THROW(require_same_trial(trial));
  }
}

TEST_F(Merge, SeedsAndListsOfBoth) {
  finish_all(study("a", {"data.fold=0", "norm.p=[2,3]"}));
  finish_all(study("b", {"data.fold=0", "norm.p=[3,4]", "train.seed=7"}));
  const MergedStudy merged = merge();
  EXPECT_EQ(merged.trials, 6u);  // three values, the default seed and 7
  EXPECT_EQ(merged.ended, 4u);
}

TEST_F(Merge, TheFurthestIsKept) {
  const Plan a = study("a", {"data.fold=[0,1]"}), b = study("b", {"data.fold=[0,1]"});
  begin(a.trials[0], 5), finish(b.trials[0], 1.25);
  begin(a.trials[1], 15), begin(b.trials[1], 5);
  finish(a.trials[2], 1.75), finish(b.trials[2], 1.5);
  const MergedStudy merged = merge();
  EXPECT_EQ(merged.ended, 2u);
  EXPECT_EQ(merged.notes.size(), 3u);
  const Plan plan = load_plan(out());
  EXPECT_EQ(read_trial(plan.trials[0]).val_loss, 1.25);
  EXPECT_EQ(glance(plan.trials[1]).step, 15);
  EXPECT_EQ(read_trial(plan.trials[2]).val_loss, 1.75);
  EXPECT_EQ(read_trial(plan.trials[3]).status, TrialStatus::missing);
}

TEST_F(Merge, RefusesWhatDiffers) {
  const Plan a = study("a", {"data.fold=0"});
  finish_all(a);
  const auto merging = [&] { merge(); };
  study("b", {"data.fold=1", "model.n_layers=3"});
  EXPECT_THAT(merging, refused("model.n_layers"));
  study("b", {"data.fold=1", "study.tune.key=optim.lr", "study.tune.values=[0.1,0.2]", "study.tune.seed=5"});
  EXPECT_THAT(merging, refused("[study.tune]"));
  const Plan b = study("b", {"data.fold=1"});
  finish(b.trials[0], 1.5, "another text");
  EXPECT_THAT(merging, refused("another text than"));
  finish_all(b);
  write_file_atomically(b.trials[0].folder / "config.toml", to_toml(b.trials[1].config));
  EXPECT_THAT(merging, refused("norm.p is 3 there and 2 in the study"));
  finish_all(b);
  write_file_atomically(b.trials[0].folder / "trial.json", "{");
  EXPECT_THAT(merging, refused("Delete the folder"));
  EXPECT_FALSE(fs::exists(out()));
  fs::remove_all(b.trials[0].folder);
  begin(b.trials[0], 5);
  {
    const FolderLock running(b.trials[0].folder);
    EXPECT_THAT(merging, refused("another process"));
  }
  EXPECT_FALSE(fs::exists(out()));
  merge();
  EXPECT_THAT(merging, refused("exists"));
}

}  // namespace
}  // namespace normlab
