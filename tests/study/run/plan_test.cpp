#include "normlab/study/run/plan.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Plan plan_of(const std::string& toml) { return make_plan(read_study(parse_toml(toml, "study.toml")), "out"); }

std::vector<std::string> labels(const Plan& plan) {
  std::vector<std::string> all;
  for (const Variant& variant : plan.variants) all.push_back(variant.label);
  return all;
}

TEST(Plan, EveryVariantOnEveryFoldAndSeed) {
  const Plan plan =
      plan_of("[norm]\nscheme = \"lp\"\np = [1, 2.5]\n[data]\nfolds = 4\nfold = [3, 1]\n[train]\nseed = [7, 8, 9]\n");
  EXPECT_THAT(labels(plan), ElementsAre("p = 1", "p = 2.5"));
  EXPECT_THAT(plan.folds, ElementsAre(3, 1));
  EXPECT_THAT(plan.seeds, ElementsAre(7, 8, 9));
  ASSERT_EQ(plan.trials.size(), 12u);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(plan.trials[i].number, i + 1);
  const Trial& trial = plan.trials[3];  // whole folds and seeds first
  EXPECT_EQ(trial.folder, "out/trials/p=2.5/fold03-seed8");
  EXPECT_EQ(trial.config.norm.p, 2.5);
  EXPECT_EQ(trial.config.data.fold, 3);
  EXPECT_EQ(trial.config.data.folds, 4);
  EXPECT_EQ(trial.config.train.seed, 8);
  EXPECT_EQ(trial.config.train.threads, 1);
  EXPECT_TRUE(plan.notes.empty());
}

TEST(Plan, AllFoldsAndTheDefaultSeedWhereNothingIsSaid) {
  EXPECT_EQ(plan_of("norm.scheme = [\"none\", \"lp\"]\n").folds.size(), 10u);
  const Plan plan = plan_of("norm.scheme = [\"none\", \"lp\"]\ndata.folds = 3\n");
  EXPECT_THAT(plan.folds, ElementsAre(0, 1, 2));
  EXPECT_THAT(plan.seeds, ElementsAre(Config{}.train.seed));
}

TEST(Plan, ProductOfListsInTheOrderOfTheConfiguration) {
  const Plan plan =
      plan_of("[optim]\nlr = [0.01, 0.02]\n[norm]\nscheme = [\"lp\", \"qknorm\"]\ngain_init = [\"matched\", 1]\n");
  EXPECT_EQ(plan.axes.size(), 3u);
  EXPECT_EQ(plan.variants.size(), 8u);
  EXPECT_EQ(plan.variants[0].label, "lp, gain_init = matched, lr = 0.01");
  EXPECT_EQ(plan.variants[0].slug, "lp,gain_init=matched,lr=0.01");
  EXPECT_EQ(plan.variants[1].label, "lp, gain_init = matched, lr = 0.02");
  EXPECT_EQ(plan.trials[1].config.optim.lr, 0.02);
}

TEST(Plan, NamedVariantsTimesLists) {
  const Plan plan = plan_of(
      "optim.lr = [0.01, 0.02]\n[[variant]]\nlabel = \"plain\"\n"
      "[[variant]]\nlabel = \"Lp, 3\"\nnorm.scheme = \"lp\"\n");
  EXPECT_THAT(labels(plan),
              ElementsAre("plain, lr = 0.01", "plain, lr = 0.02", "Lp, 3, lr = 0.01", "Lp, 3, lr = 0.02"));
  EXPECT_EQ(plan.trials[0].config.norm.name, "none");
  EXPECT_EQ(plan.trials[2].config.norm.name, "lp");
  EXPECT_EQ(plan.trials[2].config.norm.p, 3.0);
}

TEST(Plan, ListsOfOneValueStayInTheLabelSoThatFoldersOutliveLongerLists) {
  const Plan one = plan_of("norm.scheme = \"lp\"\nnorm.p = [2]\noptim.lr = [0.1, 0.2]\n");
  const Plan two = plan_of("norm.scheme = \"lp\"\nnorm.p = [2, 3]\noptim.lr = [0.1, 0.2]\n");
  EXPECT_EQ(one.trials[0].folder, two.trials[0].folder);
}

TEST(Plan, Baseline) {
  const std::string lists = "norm.scheme = \"lp\"\nnorm.p = [1, 2, 3]\n";
  EXPECT_EQ(plan_of(lists).baseline, 0u);
  EXPECT_EQ(plan_of(lists + "study.baseline = \"p = 2\"\n").baseline, 1u);
  EXPECT_EQ(plan_of(lists + "study.baseline = \"p=3\"\n").baseline, 2u);
  EXPECT_THAT([&] { plan_of(lists + "study.baseline = \"p = 5\"\n"); },
              ThrowsMessage<UsageError>(HasSubstr("Did you mean 'p = ")));
  EXPECT_THAT([&] { plan_of(lists + "study.baseline = \"something else\"\n"); },
              ThrowsMessage<UsageError>(HasSubstr("p = 1; p = 2; p = 3")));
}

TEST(Plan, FoldersHaveNoCharactersOfTheShell) {
  const Plan plan = plan_of(
      "norm.scheme = \"lp\"\nnorm.gain_init = [\"log2(L^2-L)\", \"sqrt(d_head)\", -1, 1]\n"
      "[[variant]]\nlabel = \"../a b/c*\"\n");
  EXPECT_EQ(plan.variants[0].slug, "_._ab_c_,gain_init=log2_L_2-L");
  for (const Variant& variant : plan.variants)
    EXPECT_EQ(variant.slug.find_first_of(" /*()^$'\"\\&;|<>`"), std::string::npos) << variant.slug;
  EXPECT_NE(plan.variants[0].slug.front(), '.');
  EXPECT_NE(plan.variants[2].slug, plan.variants[3].slug);
}

TEST(Plan, RefusesWhatCannotBeCompared) {
  const auto refused = [](const std::string& toml, const char* expected) {
    EXPECT_THAT([&] { plan_of(toml); }, ThrowsMessage<UsageError>(HasSubstr(expected))) << toml;
  };
  refused("norm.p = 2\n", "nothing to compare");
  refused("norm.scheme = \"lp\"\nnorm.p = [2]\n", "nothing to compare");
  refused("[data]\nfold = [0, 1]\n", "nothing to compare");
  refused("[data]\nfolds = [5, 10]\n", "same for all");
  refused("[data]\nsource = [\"a\", \"b\"]\n", "same for all");
  refused(
      "[train]\nthreads = [1, 2]\nmax_steps = [5]\n[model]\nd_head = [0]\n[[variant]]\nlabel = "
      "\"a\"\n[[variant]]\nlabel = \"a b\"\n",
      "'a, d_head = 0, max_steps = 5, threads = 1' and 'a, d_head = 0, max_steps = 5, threads = 2' compute the same "
      "thing: they differ only in train.threads");
  refused("norm.scheme = [\"qknorm\", \"lp\"]\nnorm.p = 3\n", "'qknorm, p = 3' and 'lp' compute the same thing");
  refused("norm.p = [1, 2, 3]\n", "norm.p = 1 has no effect: it is read when norm.qk is lp");
  refused("norm.gain_init = [1, 2]\n", "norm.gain_init = 2 has no effect");
  refused("train.eval_windows = [1, 2]\n", "same for all");
  refused("norm.p = [2, 3]\n[[variant]]\nlabel = \"a\"\nnorm.p = 4\n", "Leave out either");
  refused("norm.p = [2, 3]\n[[variant]]\nlabel = \"a\"\ndata.fold = 4\n", "same for all variants");
  refused("[[variant]]\nlabel = \"a\"\noptim.lr = 0.1\n[[variant]]\nlabel = \"a \"\noptim.lr = 0.2\n", "two variants");
  refused("[[variant]]\nlabel = \"a*\"\noptim.lr = 0.1\n[[variant]]\nlabel = \"a?\"\noptim.lr = 0.2\n",
          "share a folder");
  refused("norm.scheme = [\"lp\", \"lpp\"]\n", "'lp'");
  refused("norm.scheme = \"lp\"\nnorm.p = [2, 3]\n[data]\nfolds = 3\nfold = [1, 3]\n", "data.fold");
}

// Lists multiply: without a bound three lists of 300 values would fill the memory.
TEST(Plan, RefusesMoreTrialsThanAStudyCanHave) {
  const auto list_of = [](const std::string& key, int count) {
    std::string values;
    for (int i = 1; i <= count; ++i) values += std::to_string(i) + ",";
    return key + " = [" + values + "]\n";
  };
  const std::string rates = "norm.scheme = \"lp\"\n" + list_of("norm.p", 300) + list_of("optim.warmup_steps", 400);
  EXPECT_THAT([&] { plan_of(rates); },
              ThrowsMessage<UsageError>(HasSubstr("got 120000 variants, expected at most 100000")));
  const std::string seeds = "norm.scheme = [\"none\", \"lp\"]\ndata.folds = 1000\n" + list_of("train.seed", 51);
  EXPECT_THAT([&] { plan_of(seeds); }, ThrowsMessage<UsageError>(HasSubstr("got 102000 trials")));
}

TEST(Plan, OneFoldAndOneSeedIsSaid) {
  EXPECT_THAT(plan_of("norm.scheme = \"lp\"\nnorm.p = [2, 3]\ndata.fold = 9\n").notes,
              ElementsAre(HasSubstr("one fold")));
  EXPECT_TRUE(plan_of("[norm]\nscheme = \"lp\"\np = [2, 3]\n[data]\nfold = 9\n[train]\nseed = [1, 2]\n").notes.empty());
}

TEST(Plan, OfAFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { load_plan(folder.path()); }, ThrowsMessage<DataError>(HasSubstr("not a study")));
  StudySpec spec = read_study(parse_toml("norm.scheme = \"lp\"\nnorm.p = [2, 3]\n", "study.toml"));
  spec.version = NORMLAB_VERSION;
  write_file_atomically(folder / "study.toml", to_toml(spec));
  const Plan plan = load_plan(folder.path());
  EXPECT_EQ(plan.trials.size(), 20u);
  EXPECT_EQ(plan.trials[0].folder, folder / "trials/p=2/fold00-seed1337");
  EXPECT_NO_THROW(require_this_version(plan));
}

// A study made before settings without effect were refused can still be read.
TEST(Plan, AStoredStudyIsReadAsItIs) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "study.toml", "normlab = \"1\"\nnorm.p = [1, 2]\ntrain.threads = 1\n");
  EXPECT_EQ(load_plan(folder.path()).variants.size(), 2u);
}

TEST(Plan, LabelsShowWhatTheStudyOverrides) {
  const Plan plan = plan_of("norm.scheme = [\"qknorm\", \"cosine\"]\nnorm.p = 3\nstudy.baseline = \"cosine\"\n");
  EXPECT_EQ(plan.variants[0].label, "qknorm, p = 3");
  EXPECT_EQ(plan.variants[0].slug, "qknorm");  // folders are called as before
  EXPECT_EQ(plan.baseline, 1u);
}

TEST(Plan, OfAnotherVersion) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "study.toml", "normlab = \"99.0.0\"\nnorm.p = [2, 3]\n");
  EXPECT_THAT([&] { require_this_version(load_plan(folder.path())); }, ThrowsMessage<DataError>(HasSubstr("99.0.0")));
  write_file_atomically(folder / "study.toml", "normlab = \"99.0.0\"\nnorm.q = [2, 3]\n");
  EXPECT_THAT([&] { load_plan(folder.path()); }, ThrowsMessage<DataError>(HasSubstr("99.0.0")));
  write_file_atomically(folder / "study.toml", "norm.q = [2, 3]\n");
  EXPECT_THROW(load_plan(folder.path()), UsageError);
}

}  // namespace
}  // namespace normlab
