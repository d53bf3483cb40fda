// Pairing of trials, what unfinished studies leave, and convergence speed; the tests themselves are tested in stats/.
#include "normlab/study/analyse/analysis.h"

#include <gmock/gmock.h>

#include <cmath>

#include "normlab/base/error.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

using testing::ElementsAre;

const std::string three_p = "p = [2, 3, 4]\n[data]\nfolds = 10\nfold = [0, 1, 2, 3]\n";
const double fold_effect[] = {0.3, 0.1, 0.2, 0.4};  // large, and the same for all variants
const double noise[] = {0.01, -0.01, 0.005, -0.005};

double loss(size_t variant, int fold, int64_t) {
  const double effect[] = {0, -0.1, 0.05};
  return 2 + effect[variant] + fold_effect[fold] + (variant == 0 ? 0 : noise[(fold + variant) % 4]);
}

TrialResult& trial_of(StudyResults& results, size_t variant, int fold) {
  return *std::find_if(results.trials.begin(), results.trials.end(),
                       [&](const TrialResult& trial) { return trial.variant == variant && trial.fold == fold; });
}

TEST(Analysis, DifferencesArePairedByFold) {
  const Analysis analysis = analyse(sample_results(sample_plan(three_p), loss));
  ASSERT_EQ(analysis.comparisons.size(), 2u);
  const Comparison& better = analysis.comparisons[0];
  EXPECT_EQ(better.variant, 1u);
  EXPECT_THAT(better.blocks, ElementsAre(0, 1, 2, 3));
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(better.differences[i], -0.1 + noise[(i + 1) % 4], 1e-12);
  EXPECT_NEAR(*better.mean, -0.1, 1e-12);
  EXPECT_NEAR(*better.relative, -0.1 / 2.25, 1e-12);
  const TTest t = corrected_resampled_t(better.differences, 1.0 / 9);  // ten folds of the text, four of them used
  EXPECT_DOUBLE_EQ(better.t->p_value, t.p_value);
  EXPECT_DOUBLE_EQ(better.t->interval.low, t.interval.low);
  const double p_values[] = {better.t->p_value, analysis.comparisons[1].t->p_value};
  EXPECT_DOUBLE_EQ(*better.holm_p, holm(p_values)[0]);
  const TTest tests[] = {*better.t, *analysis.comparisons[1].t};
  EXPECT_DOUBLE_EQ(better.adjusted->low, holm_intervals(tests, significance)[0].low);
  EXPECT_LT(better.adjusted->low, better.t->interval.low);
  EXPECT_NEAR(*analysis.variants[0].mean, 2.25, 1e-12);
  EXPECT_GT(*analysis.variants[0].standard_error, 0.05);  // of folds, not of differences
  EXPECT_EQ(best_comparison(analysis), &better);
  ASSERT_TRUE(analysis.friedman);
  EXPECT_EQ(analysis.ranked_blocks, 4u);
  EXPECT_DOUBLE_EQ(*analysis.variants[1].average_rank, 1);
  EXPECT_DOUBLE_EQ(*analysis.variants[2].average_rank, 3);
}

TEST(Analysis, SeedsOfOneFoldAreTheBlocks) {
  const Plan plan = sample_plan("p = [2, 3]\n[data]\nfold = 3\n[train]\nseed = [11, 12, 14]\n");
  const StudyResults results = sample_results(plan, [](size_t variant, int, int64_t seed) {
    return (variant == 0 ? 2.0 : 1.9) + 0.01 * static_cast<double>(seed) + (variant == 1 && seed == 12 ? 0.03 : 0.0);
  });
  const Analysis analysis = analyse(results);
  EXPECT_EQ(analysis.block, BlockKind::seed);
  const Comparison& only = analysis.comparisons[0];
  EXPECT_THAT(only.blocks, ElementsAre(11, 12, 14));
  EXPECT_NEAR(only.differences[1], -0.07, 1e-12);
  // The plain paired t: seeds are drawn independently, so that nothing is to be corrected.
  const double spread = 0.03 / std::sqrt(3.0);
  EXPECT_NEAR(only.t->standard_error, spread / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(only.t->df, 2);
  ASSERT_TRUE(only.in_steps);
  EXPECT_EQ(only.in_steps->ratios.size(), 3u);  // every seed counts by itself
}

TEST(Analysis, SeedsAreAveragedWithinTheirFold) {
  const Plan plan = sample_plan("p = [2, 3]\n[data]\nfold = [0, 1]\n[train]\nseed = [1, 2]\n");
  const Analysis analysis = analyse(sample_results(plan, [](size_t variant, int fold, int64_t seed) {
    return variant == 0 ? 2.0 : 2.0 + 0.1 * fold + 0.01 * static_cast<double>(seed);
  }));
  const Comparison& only = analysis.comparisons[0];
  ASSERT_EQ(only.differences.size(), 2u);
  EXPECT_NEAR(only.differences[0], 0.015, 1e-12);
  EXPECT_NEAR(only.differences[1], 0.115, 1e-12);
  EXPECT_EQ(only.t->df, 1);
}

TEST(Analysis, WhatIsNotFinishedLeavesItsPairOut) {
  StudyResults results = sample_results(sample_plan(three_p), loss);
  trial_of(results, 0, 3).record.status = TrialStatus::started;
  trial_of(results, 1, 0).record.status = TrialStatus::diverged;
  trial_of(results, 2, 2).record.status = TrialStatus::missing;
  trial_of(results, 2, 2).curve.clear();
  const Analysis analysis = analyse(results);
  EXPECT_THAT(analysis.comparisons[0].blocks, ElementsAre(1, 2));
  EXPECT_THAT(analysis.comparisons[1].blocks, ElementsAre(0, 1));
  EXPECT_EQ(analysis.variants[1].diverged, 1u);
  EXPECT_EQ(analysis.variants[1].finished, 3u);
  EXPECT_NEAR(*analysis.comparisons[0].relative, *analysis.comparisons[0].mean / 2.15, 1e-12);
  EXPECT_EQ(analysis.ranked_blocks, 1u);  // only fold 1 is finished everywhere
  EXPECT_FALSE(analysis.friedman);
}

TEST(Analysis, OneFoldHasNoTests) {
  const Analysis analysis = analyse(sample_results(sample_plan("p = [2, 3]\n[data]\nfold = [0]\n"), loss));
  const Comparison& only = analysis.comparisons[0];
  EXPECT_TRUE(only.mean);
  EXPECT_FALSE(only.t || only.holm_p || only.wilcoxon || only.bootstrap || analysis.friedman);
  EXPECT_FALSE(analysis.variants[0].standard_error);
  EXPECT_TRUE(only.in_steps->factor);
  EXPECT_FALSE(only.in_steps->interval);
}

TEST(Analysis, NothingFinished) {
  StudyResults results = sample_results(sample_plan(three_p), loss);
  for (TrialResult& trial : results.trials) {
    trial.record.status = TrialStatus::missing;
    trial.curve.clear();
  }
  const Analysis analysis = analyse(results);
  EXPECT_EQ(best_comparison(analysis), nullptr);
  for (const VariantSummary& variant : analysis.variants) EXPECT_FALSE(variant.mean || variant.reached);
}

TEST(Analysis, EqualDifferencesAreNotTested) {
  const auto shifted = [](size_t variant, int, int64_t) { return variant == 0 ? 2.0 : 2.5; };
  EXPECT_FALSE(analyse(sample_results(sample_plan(three_p), shifted)).comparisons[0].t);
  const auto equal = [](size_t, int, int64_t) { return 2.0; };
  const Analysis same = analyse(sample_results(sample_plan(three_p), equal));
  EXPECT_EQ(*same.comparisons[0].holm_p, 1);
}

// The baseline falls to 2 + f in 100 steps, the rival to 1.9 + f: it is there after 100 (2 - f) / (2.1 - f).
TEST(Analysis, SpeedToTheBaselinesFinalLossOfTheSameFold) {
  const auto exact = [](size_t variant, int fold, int64_t) {
    return 2 + fold_effect[fold] + (variant == 1 ? -0.1 : 0.1);
  };
  const Analysis analysis = analyse(sample_results(
      sample_plan("p = [4, 3, 2]\n[data]\nfold = [0, 1, 2, 3]\n[study]\nbaseline = \"p = 4\"\n"), exact));
  const SpeedUp& steps = *analysis.comparisons[0].in_steps;
  ASSERT_EQ(steps.ratios.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(steps.ratios[i], (2.1 - fold_effect[i]) / (1.9 - fold_effect[i]), 1e-9);
  EXPECT_DOUBLE_EQ(*steps.factor, *analysis.comparisons[0].in_seconds->factor);
  const Comparison tested = analyse(sample_results(sample_plan(three_p), loss)).comparisons[0];
  EXPECT_EQ(tested.in_steps->interval->level, tested.adjusted->level);
  EXPECT_GT(tested.adjusted->level, 0.95);
  EXPECT_NEAR(analysis.variants[0].reached->step, 100, 1e-9);
  EXPECT_NEAR(analysis.variants[0].reached->seconds, 10, 1e-9);  // processor time, not wall time
}

TEST(Analysis, SpeedToAGivenLoss) {
  const Analysis analysis = analyse(sample_results(sample_plan(three_p), loss), {.target = 2.25});
  EXPECT_EQ(analysis.comparisons[0].in_steps->neither, 1u);        // fold 3 ends at 2.3
  EXPECT_EQ(analysis.comparisons[0].in_steps->only_rival, 1u);     // fold 0
  EXPECT_EQ(analysis.comparisons[0].in_steps->ratios.size(), 4u);  // none is dropped
  EXPECT_EQ(analysis.comparisons[0].in_steps->reached(), 3u);
  EXPECT_FALSE(analysis.comparisons[0].in_steps->interval);
  EXPECT_FALSE(analysis.variants[0].reached);
  EXPECT_THROW(analyse(sample_results(sample_plan(three_p), loss), {.target = 4.5}), UsageError);
}

TEST(Analysis, BaselineByLabel) {
  const StudyResults results = sample_results(sample_plan(three_p), loss);
  EXPECT_EQ(analyse(results, {.baseline = "p=3"}).baseline, 1u);
  EXPECT_NEAR(*analyse(results, {.baseline = "p = 3"}).comparisons[0].mean, 0.1, 1e-12);
  try {
    analyse(results, {.baseline = "p = 33"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Did you mean 'p = 3'?"));
  }
}

// Of two seeds of a fold one reaches the target: the fold does not, and counts with what both ran.
TEST(Analysis, AFoldReachesTheTargetWhenAllItsSeedsDo) {
  const Plan plan = sample_plan("p = [2, 3]\n[data]\nfold = [0, 1]\n[train]\nseed = [1, 2]\n");
  const Analysis analysis = analyse(sample_results(plan, [](size_t variant, int fold, int64_t seed) {
    return variant == 0 ? 2.0 : fold == 0 ? 1.5 : seed == 1 ? 1.5 : 2.1;
  }));
  const SpeedUp& steps = *analysis.comparisons[0].in_steps;
  EXPECT_EQ(steps.reached(), 1u);
  EXPECT_NEAR(steps.ratios[0], 1.25, 1e-9);  // 80 of 100 steps
  EXPECT_DOUBLE_EQ(steps.ratios[1], 1);      // 100 / ((80 + 100) / 2) would be faster than the baseline
  EXPECT_EQ(steps.bound(), Bound::at_most);
}

// A lower mean that may be chance must not hide a difference that is shown.
TEST(Analysis, BestIsWhatIsShownToBeBetter) {
  const auto noisy = [](size_t variant, int fold, int64_t) {
    return variant == 0 ? 2.0 : variant == 1 ? 1.9 + noise[fold] : 1.8 + 30 * noise[fold];
  };
  const Analysis analysis = analyse(sample_results(sample_plan(three_p), noisy));
  EXPECT_LT(*analysis.comparisons[1].mean, *analysis.comparisons[0].mean);
  EXPECT_EQ(best_comparison(analysis)->variant, 1u);
}

TEST(BestComparison, WorseBeyondChanceIsNotBest) {
  Analysis analysis;
  analysis.comparisons.resize(3);
  analysis.comparisons[0].mean = 0.5;
  analysis.comparisons[0].holm_p = 0.001;
  analysis.comparisons[1].mean = -0.01;
  analysis.comparisons[1].holm_p = 0.8;
  analysis.comparisons[2].mean = 0.2;
  EXPECT_EQ(best_comparison(analysis), &analysis.comparisons[1]);
  analysis.comparisons[2].mean = -0.005;
  analysis.comparisons[2].holm_p = 0.01;  // less than the other, but beyond chance
  EXPECT_EQ(best_comparison(analysis), &analysis.comparisons[2]);
}

}  // namespace
}  // namespace normlab
