// The rates that p values and intervals promise, in simulations: fold differences whose correlation is known, and
// real cross-validations of small estimators whose training sets overlap.
#include <gtest/gtest.h>

#include <algorithm>
#include <eigen3/Eigen/Dense>
#include <numeric>
#include <vector>

#include "draws.h"
#include "normlab/base/random.h"
#include "normlab/stats/paired.h"

namespace normlab {
namespace {

struct Split {
  std::vector<int> train, test;
};

std::vector<int> shuffled(int n, uint64_t key) {
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw_below(key, i, i)]);
  return order;
}

// k folds: every datum is tested once.
std::vector<Split> k_folds(int n, int k, uint64_t key) {
  const std::vector<int> order = shuffled(n, key);
  std::vector<Split> splits(static_cast<size_t>(k));
  for (size_t fold = 0; fold < splits.size(); ++fold)
    for (size_t i = 0; i < order.size(); ++i)
      (i % splits.size() == fold ? splits[fold].test : splits[fold].train).push_back(order[i]);
  return splits;
}

// Random splits, one tenth for testing: the test sets overlap too.
std::vector<Split> random_splits(int n, int repeats, uint64_t key) {
  std::vector<Split> splits;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const std::vector<int> order = shuffled(n, stream_key(key, repeat));
    const auto cut = order.begin() + n / 10;
    splits.push_back({.train = {cut, order.end()}, .test = {order.begin(), cut}});
  }
  return splits;
}

double ridge_error(const Eigen::MatrixXd& x, const Eigen::VectorXd& y, const Split& split) {
  const Eigen::MatrixXd train = x(split.train, Eigen::all);
  Eigen::MatrixXd gram = train.transpose() * train;
  gram.diagonal().array() += 1e-3;
  const Eigen::VectorXd weights = gram.llt().solve(train.transpose() * y(split.train));
  const Eigen::VectorXd errors = y(split.test) - x(split.test, Eigen::all) * weights;
  return errors.squaredNorm() / static_cast<double>(split.test.size());
}

// Two ridge regressions, each on its half of features that are alike: their expected errors are equal. With few
// features they are stable and the folds almost independent; with many, each fold's result hangs on the shared data.
struct Setting {
  int n = 0;
  int n_features = 0;
};

struct Rates {
  double corrected = 0, plain = 0;
};

// How often each test finds a difference at 5 % where there is none.
template <class MakeSplits>
Rates false_alarms(const Setting& setting, int simulations, const MakeSplits& make_splits) {
  Rates rates;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const uint64_t key = stream_key(20, simulation);
    NormalDraws normal(stream_key(key, 1));
    const int d = setting.n_features;
    const Eigen::MatrixXd x = Eigen::MatrixXd::NullaryExpr(setting.n, 2 * d, [&] { return normal(); });
    const Eigen::VectorXd noise = Eigen::VectorXd::NullaryExpr(setting.n, [&] { return normal(); });
    const Eigen::VectorXd y = x.rowwise().sum() / std::sqrt(d) + noise;
    std::vector<double> differences;
    for (const Split& split : make_splits(stream_key(key, 2)))
      differences.push_back(ridge_error(x.leftCols(d), y, split) - ridge_error(x.rightCols(d), y, split));
    rates.corrected += corrected_resampled_t(differences, 1.0 / 9).p_value <= 0.05;
    rates.plain += paired_t(differences).p_value <= 0.05;
  }
  return {rates.corrected / simulations, rates.plain / simulations};
}

TEST(PairedSimulation, TenFoldRidgeWithoutEffect) {
  constexpr int simulations = 1500;
  const auto folds = [](uint64_t key) { return k_folds(40, 10, key); };
  const Rates stable = false_alarms({.n = 40, .n_features = 1}, simulations, folds);
  const Rates unstable = false_alarms({.n = 40, .n_features = 20}, simulations, folds);
  EXPECT_LE(stable.corrected, 0.05 + sampling_error(0.05, simulations));
  EXPECT_LE(unstable.corrected, 0.05 + sampling_error(0.05, simulations));
  EXPECT_GE(unstable.plain, 0.10);  // what the correction is for
}

TEST(PairedSimulation, RandomSplitsOfRidgeWithoutEffect) {
  constexpr int simulations = 1500;
  const Rates rates =
      false_alarms({.n = 60, .n_features = 1}, simulations, [](uint64_t key) { return random_splits(60, 15, key); });
  EXPECT_LE(rates.corrected, 0.05 + sampling_error(0.05, simulations));
  EXPECT_GE(rates.plain, 0.15);
}

// The mean of the training data against half of it, as predictors of new data with mean 1 and variance 1. Expected
// squared errors: 1 + 1/n_train, and 1 + 1/4 + 1/4 1/n_train.
TEST(PairedSimulation, RandomSplitsCoverKnownEffect) {
  constexpr int simulations = 3000, n = 50;
  const double effect = 0.75 / 45 - 0.25;
  int covered = 0;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    NormalDraws normal(stream_key(21, simulation));
    const Eigen::VectorXd y = Eigen::VectorXd::NullaryExpr(n, [&] { return 1 + normal(); });
    std::vector<double> differences;
    for (const Split& split : random_splits(n, 15, stream_key(22, simulation))) {
      const double centre = y(split.train).mean();
      const Eigen::ArrayXd test = y(split.test);
      differences.push_back((test - centre).square().mean() - (test - centre / 2).square().mean());
    }
    const Interval interval = corrected_resampled_t(differences, 1.0 / 9).interval;
    covered += interval.low <= effect && effect <= interval.high;
  }
  const double rate = static_cast<double>(covered) / simulations;
  EXPECT_GE(rate, 0.95 - sampling_error(0.95, simulations));
}

// Ten normal differences with mean `effect`, each pair correlated as Nadeau and Bengio suppose:
// n_test / (n_test + n_train), here 1 / 10.
std::vector<double> correlated_differences(double effect, double correlation, uint64_t key) {
  NormalDraws normal(key);
  const double shared = std::sqrt(correlation) * normal();
  std::vector<double> differences(10);
  for (double& difference : differences) difference = effect + shared + std::sqrt(1 - correlation) * normal();
  return differences;
}

// Where its assumption holds, the corrected test rejects and covers at exactly its level.
TEST(PairedSimulation, CorrectedTestKeepsItsLevel) {
  constexpr int simulations = 10000;
  int rejected = 0, plain_rejected = 0, covered = 0;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const auto none = correlated_differences(0, 0.1, stream_key(23, simulation));
    rejected += corrected_resampled_t(none, 1.0 / 9).p_value <= 0.05;
    plain_rejected += paired_t(none).p_value <= 0.05;
    const Interval interval =
        corrected_resampled_t(correlated_differences(0.7, 0.1, stream_key(24, simulation)), 1.0 / 9, 0.9).interval;
    covered += interval.low <= 0.7 && 0.7 <= interval.high;
  }
  EXPECT_NEAR(rejected / double{simulations}, 0.05, sampling_error(0.05, simulations));
  EXPECT_NEAR(covered / double{simulations}, 0.90, sampling_error(0.90, simulations));
  EXPECT_GE(plain_rejected / double{simulations}, 0.10);
}

// On independent differences the plain t-test and Wilcoxon's, whose 5 % is 50 / 1024 with ten values
// (scipy.stats.wilcoxon: statistic 8 has p = 0.048828125).
TEST(PairedSimulation, IndependentDifferencesKeepTheLevel) {
  constexpr int simulations = 10000;
  constexpr double attainable = 0.048828125;
  int t_rejected = 0, wilcoxon_rejected = 0, t_covered = 0, wilcoxon_covered = 0;
  double level = 0;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const auto none = correlated_differences(0, 0, stream_key(25, simulation));
    const TTest t = paired_t(none);
    const WilcoxonTest wilcoxon = wilcoxon_signed_rank(none);
    level = wilcoxon.interval->level;
    t_rejected += t.p_value <= 0.05;
    t_covered += t.interval.low <= 0 && 0 <= t.interval.high;
    wilcoxon_rejected += wilcoxon.p_value <= 0.05;
    wilcoxon_covered += wilcoxon.interval->low <= 0 && 0 <= wilcoxon.interval->high;
  }
  EXPECT_NEAR(t_rejected / double{simulations}, 0.05, sampling_error(0.05, simulations));
  EXPECT_EQ(t_covered, simulations - t_rejected);
  EXPECT_NEAR(wilcoxon_rejected / double{simulations}, attainable, sampling_error(attainable, simulations));
  EXPECT_EQ(wilcoxon_covered, simulations - wilcoxon_rejected);
  EXPECT_DOUBLE_EQ(level, 1 - attainable);
}

}  // namespace
}  // namespace normlab
