// Results read from run folders: whole ones, and those that are unfinished, damaged or of another configuration.
#include "normlab/study/analyse/results.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/record/safetensors.h"
#include "sandbox.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Results : public testing::Test {
 protected:
  TemporaryFolder folder_;
  Plan plan() const { return sample_plan("p = [2, 3]\n[data]\nfold = [0, 1]\n", folder_.path()); }
  const Trial first_ = plan().trials[0];

  static void write(const Trial& trial, const std::string& name, const std::string& content) {
    std::filesystem::create_directories((trial.folder / name).parent_path());
    write_file_atomically(trial.folder / name, content);
  }

  static void finish(const Trial& trial) {
    write(trial, "config.toml", to_toml(trial.config));
    write(trial, "metrics.jsonl",
          "{\"step\":0,\"val_loss\":4,\"train_seconds\":0,\"train_cpu_seconds\":0}\n{\"step\":5,\"loss\":3}\n"
          "{\"step\":10,\"val_loss\":1.5,\"train_seconds\":8,\"train_cpu_seconds\":7}\n"
          "{\"step\":20,\"val_loss\":2,\"train_seconds\":16}\n");
    write(trial, "trial.json",
          "{\"outcome\":\"finished\",\"step\":20,\"parameters\":1,\"train_seconds\":16,\"train_cpu_seconds\":15,"
          "\"data_sha256\":\"\"}");
    write(trial, "manifest.json",
          "{\"sessions\":[{\"started\":\"2026-01-02T00:00:00Z\",\"version\":\"9.9\",\"kernels\":\"AVX2\",\"threads\":1,"
          "\"machine\":{\"cpu\":\"CPU\",\"cores\":2,\"memory_bytes\":16e9,\"system\":\"Linux\"}}]}");
    const float gains[] = {1.F, 3.F, 7.F};
    const auto* bytes = reinterpret_cast<const std::byte*>(gains);
    const std::vector<TensorView> tensors = {{"layers.10.attn.qk_gain", Dtype::f32, {1}, bytes + 8, 4},
                                             {"layers.2.attn.qk_gain", Dtype::f32, {2}, bytes, 8}};
    write(trial, "checkpoints/step-000020/state.json", "{}");
    write_safetensors(trial.folder / "checkpoints/step-000020/model.safetensors", tensors, {});
  }
};

TEST_F(Results, ReadsTheProbesOfEveryAttention) {
  finish(first_);
  write(first_, "metrics.jsonl",
        "{\"step\":4,\"attn/layer00/max_logit\":3,\"attn/layer00/relative_entropy\":0.5,"
        "\"attn/layer01/max_logit\":2,\"attn/layer01/relative_entropy\":0.7}\n"
        "{\"step\":8,\"attn/encoder00/max_logit\":3,\"attn/encoder00/relative_entropy\":0.2,"
        "\"attn/decoder00/max_logit\":5,\"attn/decoder00/relative_entropy\":0.4,"
        "\"attn/cross00/max_logit\":9,\"attn/cross00/relative_entropy\":0.9}\n");
  const auto attention = load_results(plan()).trials[0].attention;
  ASSERT_EQ(attention.size(), 2u);
  EXPECT_EQ(attention[0].max_logit, 3);
  EXPECT_DOUBLE_EQ(attention[0].relative_entropy, 0.6);
  EXPECT_EQ(attention[1].max_logit, 9);
  EXPECT_DOUBLE_EQ(attention[1].relative_entropy, 0.5);
}

TEST_F(Results, ReadsCurveGainsAndProvenance) {
  finish(first_);
  const StudyResults results = load_results(plan());
  ASSERT_EQ(results.trials.size(), 4u);
  const TrialResult& trial = results.trials[0];
  EXPECT_TRUE(is_finished(trial));
  EXPECT_EQ(trial.folder, "trials/p=2/fold00-seed1337");
  ASSERT_EQ(trial.curve.size(), 3u);
  EXPECT_EQ(trial.curve[1].step, 10);
  EXPECT_EQ(trial.curve[1].cpu_seconds, 7);
  EXPECT_EQ(trial.curve[2].cpu_seconds, 16);  // not recorded: wall time stands in
  EXPECT_EQ(best_loss(trial), 1.5);
  ASSERT_EQ(trial.gains.size(), 2u);  // by layer, not by name
  EXPECT_EQ(trial.gains[0].layer, 2);
  EXPECT_EQ(trial.gains[0].value, 2);  // the mean over heads
  EXPECT_EQ(trial.gains[1].value, 7);
  EXPECT_THAT(results.provenance.versions, ElementsAre("normlab 9.9"));
  EXPECT_THAT(results.provenance.machines, ElementsAre("CPU, 2 cores, 16 GB, Linux"));
  EXPECT_EQ(results.trials[1].record.status, TrialStatus::missing);
}

TEST_F(Results, UnfinishedTrialHasItsCurve) {
  finish(first_);
  std::filesystem::remove(first_.folder / "trial.json");
  const TrialResult trial = load_results(plan()).trials[0];
  EXPECT_EQ(trial.record.status, TrialStatus::started);
  EXPECT_EQ(trial.curve.size(), 3u);
}

TEST_F(Results, DamageIsRecordedNotThrown) {
  finish(first_);
  write(first_, "metrics.jsonl", "{\"step\":0}\nnonsense\n{\"step\":20,\"val_loss\":2}\n");
  TrialResult trial = load_results(plan()).trials[0];
  EXPECT_EQ(trial.record.status, TrialStatus::damaged);
  EXPECT_THAT(trial.record.message, HasSubstr("line 2"));

  write(first_, "metrics.jsonl", "{\"step\":20,\"loss\":2}\n");  // finished, but never evaluated
  trial = load_results(plan()).trials[0];
  EXPECT_EQ(trial.record.status, TrialStatus::damaged);
  EXPECT_THAT(trial.record.message, HasSubstr("no evaluation"));

  finish(first_);
  write(first_, "config.toml", replace_all(to_toml(first_.config), "lr = 0.001", "lr = 0.1"));
  trial = load_results(plan()).trials[0];
  EXPECT_EQ(trial.record.status, TrialStatus::damaged);
  EXPECT_THAT(trial.record.message, HasSubstr("optim.lr"));
}

TEST_F(Results, LossesStandWithoutACheckpoint) {
  finish(first_);
  write(first_, "checkpoints/step-000020/model.safetensors", "broken");
  const StudyResults results = load_results(plan());
  EXPECT_TRUE(is_finished(results.trials[0]));
  EXPECT_THAT(results.trials[0].gains, IsEmpty());
  EXPECT_EQ(results.without_gains, 1u);
}

TEST_F(Results, OfTwoEvaluationsOfAStepTheFirstCounts) {
  finish(first_);
  write(first_, "metrics.jsonl",
        "{\"step\":10,\"val_loss\":1.5}\n{\"step\":10,\"val_loss\":1.4}\n{\"step\":20,\"val_loss\":2}\n"
        "{\"step\":20,\"val_loss\":9}\n");
  const auto curve = load_results(plan()).trials[0].curve;
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0].loss, 1.5);
  EXPECT_EQ(curve[1].loss, 2);
}

// Whatever one trial holds, the others are reported.
TEST_F(Results, HostileFilesSpoilTheirTrialAlone) {
  const std::string deep = "{\"step\":20,\"a\":" + std::string(300'000, '[') + std::string(300'000, ']') + "}\n";
  finish(plan().trials[1]);
  for (const char* file : {"metrics.jsonl", "manifest.json", "trial.json", "checkpoints/step-000020/state.json"}) {
    finish(first_);
    write(first_, file, deep);
    EXPECT_TRUE(is_finished(load_results(plan()).trials[1])) << file;
    for (const bool folder : {true, false}) {
      std::filesystem::remove_all(first_.folder / file);
      if (folder)
        std::filesystem::create_directory(first_.folder / file);
      else
        ASSERT_EQ(::mkfifo((first_.folder / file).c_str(), 0600), 0);
      EXPECT_TRUE(is_finished(load_results(plan()).trials[1])) << file;
    }
    std::filesystem::remove_all(first_.folder);
  }
}

}  // namespace
}  // namespace normlab
