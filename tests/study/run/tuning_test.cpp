#include "normlab/study/run/tuning.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/study/present/study_report.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

constexpr const char* tuned_study =
    "[study]\nbaseline = \"p = 3\"\n[study.tune]\nkey = \"optim.lr\"\nvalues = [1e-2, 1e-3, 3e-3]\nseed = 99\n"
    "[norm]\nscheme = \"lp\"\np = [2, 3]\n[data]\nfold = [4, 5]\n[train]\nmax_steps = 20\n";

Plan tuned_plan(const std::filesystem::path& folder, const std::string& toml = tuned_study) {
  return make_plan(read_study(parse_toml(toml, "study.toml")), folder);
}

void finish(const Trial& trial, double loss, const char* outcome = "finished") {
  std::filesystem::create_directories(trial.folder);
  const auto write = [&](const char* name, const std::string& content) {
    write_file_atomically(trial.folder / name, content);
  };
  write("config.toml", to_toml(trial.config));
  write("metrics.jsonl", concat("{\"step\":0,\"val_loss\":4.5}\n{\"step\":20,\"val_loss\":", loss, "}\n"));
  write("trial.json",
        concat("{\"outcome\":\"", outcome, "\",\"step\":20,\"val_loss\":", loss,
               ",\"parameters\":9,\"train_seconds\":2,\"train_cpu_seconds\":2.5,\"data_sha256\":\"abc\"}"));
}

// Every tuning trial that is known so far ends with a loss that is least at the rate `best`.
void finish_tuning(const Plan& plan, double best) {
  for (const Trial& trial : tuning_plan(plan).trials)
    finish(trial, 2.0 + std::abs(std::log(trial.config.optim.lr / best)));
}

TEST(Tuning, IsAStudyOfEveryValueForEveryVariant) {
  const Plan plan = tuned_plan("out"), tuning = tuning_plan(plan);
  EXPECT_FALSE(plan.is_tuned());
  EXPECT_EQ(tuning.folder, "out/tuning");
  ASSERT_EQ(tuning.trials.size(), 6u);
  EXPECT_EQ(tuning.variants[0].label, "p = 2, lr = 0.001");  // the values in ascending order
  EXPECT_EQ(tuning.trials[5].config.norm.p, 3.0);
  EXPECT_EQ(tuning.trials[5].config.optim.lr, 0.01);
  for (const Trial& trial : tuning.trials) {
    EXPECT_EQ(trial.fold, 4);  // the first of the study
    EXPECT_EQ(trial.seed, 99);
    EXPECT_EQ(trial.config.train.max_steps, 20);
  }
  // What the folder holds reads back to the same trials.
  const Plan again = make_plan(read_study(parse_toml(to_toml(tuning.spec), "study.toml")), "out/tuning");
  ASSERT_EQ(again.trials.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(to_toml(again.trials[i].config), to_toml(tuning.trials[i].config));
}

TEST(Tuning, ReplacesTheValueOfTheConfiguration) {
  const Plan plan = tuned_plan("out", concat(tuned_study, "[optim]\nlr = 0.1\n"));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("optim.lr = 0.1 gives way")));
  EXPECT_EQ(tuning_plan(plan).trials[0].config.optim.lr, 0.001);
}

TEST(Tuning, SurvivesTheFileOfTheStudy) {
  const StudySpec spec = read_study(parse_toml(to_toml(tuned_plan("out").spec), "study.toml"));
  EXPECT_EQ(spec.tune.key, "optim.lr");
  EXPECT_THAT(spec.tune.values, ElementsAre("0.001", "0.003", "0.01"));
  EXPECT_EQ(spec.tune.seed, 99);
}

TEST(Tuning, TheBestValueGoesIntoTheTrials) {
  TemporaryFolder folder;
  finish_tuning(tuned_plan(folder.path()), 0.003);
  const Plan plan = tuned_plan(folder.path());
  ASSERT_TRUE(plan.is_tuned());
  for (const Trial& trial : plan.trials) EXPECT_EQ(trial.config.optim.lr, 0.003);
  EXPECT_FALSE(plan.tuned[0].extended);
}

TEST(Tuning, ABestValueAtAnEdgeExtendsTheGridOnceAndIsFlagged) {
  for (const double best : {0.03, 1.0, 0.0001}) {
    TemporaryFolder folder;
    finish_tuning(tuned_plan(folder.path()), best);
    const Plan extended = tuned_plan(folder.path());
    EXPECT_FALSE(extended.is_tuned()) << best;  // one more trial for each variant
    EXPECT_EQ(tuning_plan(extended).trials.size(), 8u);
    finish_tuning(extended, best);
    const Plan plan = tuned_plan(folder.path());
    ASSERT_TRUE(plan.is_tuned());
    EXPECT_EQ(plan.trials[0].config.optim.lr, best < 0.01 ? 0.00033 : 0.033);
    const StudyResults results = load_results(plan);
    EXPECT_EQ(results.tuning_trials, 8u);
    EXPECT_EQ(results.tuning_cpu_seconds, 20.0);
    const StudyReport report = make_report(results, analyse(results, {}));
    EXPECT_THAT(report.verdict.notices, Contains(HasSubstr("extended once for: p = 2; p = 3")));
    EXPECT_THAT(report.verdict.notices, Contains(HasSubstr("at the edge")).Times(2));
    EXPECT_THAT(report.json, HasSubstr("\"tuning\""));
  }
}

TEST(Tuning, ADivergedValueLosesToEveryOther) {
  TemporaryFolder folder;
  const Plan tuning = tuning_plan(tuned_plan(folder.path()));
  for (const Trial& trial : tuning.trials)
    if (trial.config.optim.lr > 0.002 && trial.config.norm.p == 2.0)
      finish(trial, 1.0, "diverged");
    else
      finish(trial, 3.0 + trial.config.optim.lr);
  const Plan extended = tuned_plan(folder.path());
  EXPECT_EQ(extended.tuned[0].values.front(), "0.00033");
}

TEST(Tuning, OfALadderKeepsEachRung) {
  const std::string toml =
      "norm.scheme = [\"gpt+\", \"angpt\"]\n[study.tune]\nkey = \"optim.lr\"\nvalues = [1e-3, 1e-2]\nseed = 99\n"
      "[ladder]\ndepth = [2, 3]\ntokens = 50000\nwidth_per_layer = 16\nhead_width = 16\n[data]\nfold = [4]\n";
  const Plan plan = tuned_plan("out", toml), tuning = tuning_plan(plan);
  ASSERT_EQ(tuning.trials.size(), 8u);
  EXPECT_EQ(tuning.trials[2].config.model.n_layers, 3);
  EXPECT_NEAR(tuning.trials[2].config.optim.lr, plan.trials[1].config.optim.lr / 10, 1e-6);
  const Plan again = make_plan(read_study(parse_toml(to_toml(tuning.spec), "study.toml")), "out/tuning");
  EXPECT_EQ(to_toml(again.trials[7].config), to_toml(tuning.trials[7].config));
}

TEST(Tuning, RefusesWhatTheStudyUsesItself) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return [=] { tuned_plan("out", replace_all(tuned_study, from, to)); };
  };
  EXPECT_THAT(refusal("seed = 99", "seed = 1337"), ThrowsMessage<UsageError>(HasSubstr("1337")));
  EXPECT_THAT(refusal("[study]\nbaseline = \"p = 3\"\n", "[optim]\nlr = [0.1, 0.2]\n"),
              ThrowsMessage<UsageError>(HasSubstr("varies optim.lr")));
  EXPECT_THAT(refusal("seed = 99\n", ""), ThrowsMessage<UsageError>(HasSubstr("seed")));
  EXPECT_THAT(refusal("[1e-2, 1e-3, 3e-3]", "[1e-2]"), ThrowsMessage<UsageError>(HasSubstr("two or more")));
  EXPECT_THAT(refusal("[1e-2, 1e-3, 3e-3]", "[1e-2, 0]"), ThrowsMessage<UsageError>(HasSubstr("above 0")));
  EXPECT_THAT(refusal("optim.lr", "optim.rate"), ThrowsMessage<UsageError>(HasSubstr("optim.rate")));
  EXPECT_THAT(refusal("key =", "kee ="), ThrowsMessage<UsageError>(HasSubstr("study.tune.key")));
  EXPECT_THAT(refusal("optim.lr", "data.folds"), ThrowsMessage<UsageError>(Not(HasSubstr("internal"))));
}

}  // namespace
}  // namespace normlab
