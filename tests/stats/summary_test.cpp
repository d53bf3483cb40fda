// Summary numbers against numpy, SciPy and matplotlib.
#include "normlab/stats/summary.h"

#include <gmock/gmock.h>

#include <cmath>

#include "refusal.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<double> folds{0.021, 0.013, -0.004, 0.030, 0.017, 0.009, 0.025, -0.002, 0.011, 0.019};

TEST(Summary, MomentsAsNumpy) {
  EXPECT_DOUBLE_EQ(mean(folds), 0.0139);                             // numpy.mean
  EXPECT_DOUBLE_EQ(standard_deviation(folds), 0.01092855586678008);  // numpy.std(ddof=1)
  EXPECT_DOUBLE_EQ(standard_error(folds), 0.003455912807542072);     // scipy.stats.sem
  EXPECT_DOUBLE_EQ(mean(std::vector{7.0}), 7.0);
  EXPECT_DOUBLE_EQ(standard_deviation(std::vector{1e-200, -1e-200}), 1e-200 * std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(standard_deviation(std::vector{1e200, -1e200}), 1e200 * std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(standard_deviation(std::vector{1e9 + 1, 1e9 + 2, 1e9 + 3}), 1.0);
}

TEST(Summary, EqualValuesHaveNoSpread) {
  const std::vector<double> equal(7, 0.1);
  EXPECT_EQ(standard_deviation(equal), 0.0);
  EXPECT_EQ(standard_error(equal), 0.0);
  EXPECT_DOUBLE_EQ(mean(equal), 0.1);
}

TEST(Summary, QuantilesAsNumpy) {
  // numpy.quantile(folds, [0, 0.1, 0.25, 0.5, 0.9, 1])
  EXPECT_DOUBLE_EQ(quantile(folds, 0), -0.004);
  EXPECT_DOUBLE_EQ(quantile(folds, 0.1), -0.0022);
  EXPECT_DOUBLE_EQ(quantile(folds, 0.25), 0.0095);
  EXPECT_DOUBLE_EQ(quantile(folds, 0.9), 0.0255);
  EXPECT_DOUBLE_EQ(quantile(folds, 1), 0.03);
  EXPECT_DOUBLE_EQ(median(folds), 0.015);
  EXPECT_EQ(median(std::vector{3.0}), 3.0);
  EXPECT_EQ(median(std::vector{5.0, 1.0, 4.0}), 4.0);
}

TEST(Summary, BoxPlotAsMatplotlib) {
  // matplotlib.cbook.boxplot_stats
  const BoxPlot box = box_plot(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 30, -20});
  EXPECT_DOUBLE_EQ(box.q1, 2.5);
  EXPECT_DOUBLE_EQ(box.median, 5);
  EXPECT_DOUBLE_EQ(box.q3, 7.5);
  EXPECT_EQ(box.whisker_low, 1);
  EXPECT_EQ(box.whisker_high, 9);
  EXPECT_DOUBLE_EQ(box.mean, 5);
  EXPECT_THAT(box.outliers, ElementsAre(-20, 30));
}

TEST(Summary, BoxPlotWhiskerNeverEndsInsideTheBox) {
  const BoxPlot low = box_plot(std::vector<double>{-1000, 0, 0, 0});
  EXPECT_EQ(low.whisker_low, -250);
  EXPECT_EQ(low.q1, -250);
  EXPECT_THAT(low.outliers, ElementsAre(-1000));
  const BoxPlot high = box_plot(std::vector<double>{1000, 0, 0, 0});
  EXPECT_EQ(high.whisker_high, 250);
}

TEST(Summary, BoxPlotKeepsADatumOnTheFence) {
  // Quartiles 1 and 3, fences -2 and 6.
  const BoxPlot box = box_plot(std::vector<double>{-2, 1, 1, 2, 3, 3, 6});
  EXPECT_EQ(box.whisker_low, -2);
  EXPECT_EQ(box.whisker_high, 6);
  EXPECT_THAT(box.outliers, IsEmpty());
  EXPECT_THAT(box_plot(std::vector<double>{-2.1, 1, 1, 2, 3, 3, 6.1}).outliers, ElementsAre(-2.1, 6.1));
}

TEST(Summary, BoxPlotOfOneValue) {
  const BoxPlot box = box_plot(std::vector{3.0});
  EXPECT_EQ(box.whisker_low, 3);
  EXPECT_EQ(box.q1, 3);
  EXPECT_EQ(box.q3, 3);
  EXPECT_EQ(box.whisker_high, 3);
  EXPECT_THAT(box.outliers, IsEmpty());
}

TEST(Summary, RanksAsScipy) {
  // scipy.stats.rankdata
  const Ranks ranks = average_ranks(std::vector<double>{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5});
  EXPECT_THAT(ranks.ranks, ElementsAre(4.5, 1.5, 6, 1.5, 8, 11, 3, 10, 8, 4.5, 8));
  EXPECT_THAT(ranks.tied, ElementsAre(2, 2, 3));
  EXPECT_EQ(ranks.tie_sum, 6 + 6 + 24);
  EXPECT_EQ(average_ranks(std::vector<double>{2, 1}).tie_sum, 0);
}

TEST(Summary, RefusesWhatIsNotASample) {
  expect_refused([] { mean({}); }, Exit::data, "[mean] too few values; got 0, expected at least 1.");
  expect_refused([] { standard_deviation(std::vector{1.0}); }, Exit::data, "got 1, expected at least 2");
  expect_refused([] { mean(std::vector{1.0, nan}); }, Exit::data, "value 2 of 2 is not finite; got nan");
  expect_refused([] { box_plot(std::vector{-inf, 2.0}); }, Exit::data, "value 1 of 2 is not finite; got -inf");
  expect_refused([] { average_ranks(std::vector{nan}); }, Exit::data, "not finite");
  expect_refused([] { median({}); }, Exit::data, "too few values");
  expect_refused([] { quantile(folds, 25); }, Exit::usage, "got 25, expected 0 to 1");
  expect_refused([] { quantile(folds, nan); }, Exit::usage, "got nan");
  expect_refused([] { mean(std::vector{1e308, 1e308}); }, Exit::data, "too large");
  expect_refused([] { standard_deviation(std::vector{1.7e308, -1.7e308}); }, Exit::data, "too large");
  expect_refused([] { require_level("test", 95); }, Exit::usage, "got 95, expected a number between 0 and 1");
  expect_refused([] { require_level("test", nan); }, Exit::usage, "got nan");
}

}  // namespace
}  // namespace normlab
