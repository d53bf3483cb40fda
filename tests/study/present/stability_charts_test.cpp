#include "normlab/study/present/stability_charts.h"

#include <gtest/gtest.h>

#include <cmath>

#include "normlab/study/present/study_report.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

constexpr const char* rates =
    "p = [2, 3]\n[optim]\nmin_lr = 0\nlr = [0.001, 0.01, 0.1]\n[data]\nfold = [9]\n[train]\nseed = [1, 2]\n";

// p = 2 loses 0.5 at the first rate and diverges at the last; p = 3 does not care.
StudyResults rate_results() {
  const Plan plan = sample_plan(rates);
  StudyResults results = sample_results(plan, [&](size_t variant, int, int64_t seed) {
    const double best = 1.0 + 0.1 * static_cast<double>(seed);
    return variant >= 3 ? best : variant == 0 ? best + 0.5 : best;
  });
  for (TrialResult& trial : results.trials) {
    if (trial.variant == 2) trial.record.status = TrialStatus::diverged, trial.curve.resize(3);
    for (int64_t step = 10; step <= 50; step += 10)
      trial.attention.push_back({step, 2.0 + static_cast<double>(trial.variant), 0.5});
  }
  return results;
}

std::vector<std::string> ids(const std::vector<Figure>& figures) {
  std::vector<std::string> list;
  for (const Figure& figure : figures) list.push_back(figure.caption.id);
  return list;
}

std::vector<Figure> charts(const StudyResults& results) {
  const Analysis analysis = analyse(results);
  const Grid grid = grid_of(results.plan);
  const GridStyles styles = styles_of(grid, analysis.baseline);
  return stability_charts({results, analysis, grid, styles});
}

TEST(StabilityCharts, SensitivityOfEachVariantAndSeed) {
  const StudyResults results = rate_results();
  const auto found = sensitivities(results, grid_of(results.plan));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].label, "p = 2");
  ASSERT_EQ(found[0].values.size(), 2U);
  EXPECT_NEAR(found[0].values[0], (0.5 + 0.0 + (4.0 - 1.1)) / 3, 1e-12);
  EXPECT_NEAR(found[0].values[1], (0.5 + 0.0 + (4.0 - 1.2)) / 3, 1e-12);
  EXPECT_NEAR(found[1].values[0], 0.0, 1e-12);
}

TEST(StabilityCharts, ASeedThatHasNotEndedAtEveryRateIsLeftOut) {
  StudyResults results = rate_results();
  for (TrialResult& trial : results.trials)
    if (trial.variant == 4 && trial.seed == 2) trial.record.status = TrialStatus::started;
  const auto found = sensitivities(results, grid_of(results.plan));
  EXPECT_EQ(found[0].values.size(), 2U);
  EXPECT_EQ(found[1].values.size(), 1U);
}

TEST(StabilityCharts, WhatThereIsIsDrawn) {
  const std::vector<Figure> figures = charts(rate_results());
  EXPECT_EQ(ids(figures), (std::vector<std::string>{"rates", "logits", "entropy", "logits-end"}));
  EXPECT_NE(figures[0].wide.body.find("p = 2: 1.12"), std::string::npos) << "no sensitivity in the legend";
  const StudyResults results = rate_results();
  const StudyReport report = make_report(results, analyse(results));
  EXPECT_NE(report.json.find("\"learning_rate_sensitivity\""), std::string::npos);

  const StudyResults plain = sample_results(sample_plan("p = [1, 2]\n"), [](size_t, int, int64_t) { return 1.5; });
  EXPECT_TRUE(charts(plain).empty());  // no probe, no rates
}

}  // namespace
}  // namespace normlab
