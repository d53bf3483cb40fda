// BCa intervals against SciPy on the very same resamples, and their coverage of a known effect.
#include "normlab/stats/bootstrap.h"

#include <cmath>

#include "draws.h"
#include "normlab/base/random.h"
#include "refusal.h"

namespace normlab {
namespace {

const std::vector<double> waits{1.2137, 0.7091, 3.9418, 0.4226, 2.2873, 8.1304,
                                1.9571, 0.3349, 1.1083, 5.2617, 0.6452, 2.7769};
const std::vector<double> others{0.9, 0.8, 3.0, 0.6, 2.5, 6.9, 1.1, 0.5, 1.4, 4.0, 0.2, 2.0};

double correlation(std::span<const double> x, std::span<const double> y) {
  const double mean_x = mean(x), mean_y = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xy / std::sqrt(xx * yy);
}

void expect_bca(const BootstrapInterval& result, double estimate, double standard_error, const Interval& interval) {
  EXPECT_NEAR(result.estimate, estimate, 1e-13);
  EXPECT_NEAR(result.standard_error, standard_error, 1e-13);
  EXPECT_NEAR(result.interval.low, interval.low, 1e-12);
  EXPECT_NEAR(result.interval.high, interval.high, 1e-12);
  EXPECT_EQ(result.interval.level, interval.level);
  EXPECT_EQ(result.method, BootstrapMethod::bca);
}

// scipy.stats.bootstrap((x,), f, method='BCa', n_resamples=0, bootstrap_result=r, confidence_level=level) where
// r.bootstrap_distribution holds f of the 2000 resamples that draw_below(stream_key(seed, r), i, 12) selects.
TEST(Bootstrap, BcaAsScipy) {
  expect_bca(bootstrap(waits, mean, {.seed = 7, .resamples = 2000}), 2.3990833333333335, 0.6492248476235192,
             {1.3946894946686055, 4.0464883563709435, 0.95});
  expect_bca(bootstrap(waits, mean, {.seed = 8, .resamples = 2000, .level = 0.9}), 2.3990833333333335,
             0.6560103926350231, {1.5739285077171752, 3.7748609697090956, 0.9});
  expect_bca(bootstrap(waits, median, {.seed = 7, .resamples = 2000}), 1.5854, 0.7217809910555726,
             {0.6771499999999999, 3.35935, 0.95});
}

// The same with paired=True.
TEST(Bootstrap, PairedBcaAsScipy) {
  const BootstrapOptions options{.seed = 11, .resamples = 2000};
  expect_bca(bootstrap_paired(others, waits, correlation, options), 0.9823109401192837, 0.032840674961122335,
             {0.9036310539685183, 0.9959939373298154, 0.95});
  const auto ratio = [](std::span<const double> x, std::span<const double> y) { return mean(x) / mean(y); };
  expect_bca(bootstrap_paired(others, waits, ratio, options), 0.8301781930598491, 0.04796712367850057,
             {0.743894470855941, 0.9333832432010987, 0.95});
}

TEST(Bootstrap, ScaleOfTheDataDoesNotMatter) {
  std::vector<double> tiny = waits;
  for (double& value : tiny) value *= 0x1.0p-600;
  const BootstrapInterval scaled = bootstrap(tiny, mean), plain = bootstrap(waits, mean);
  EXPECT_EQ(scaled.method, BootstrapMethod::bca);
  EXPECT_DOUBLE_EQ(scaled.interval.high, plain.interval.high * 0x1.0p-600);
}

TEST(Bootstrap, SeedDecidesTheDraws) {
  const BootstrapInterval first = bootstrap(waits, mean, {.seed = 1}), again = bootstrap(waits, mean, {.seed = 1});
  EXPECT_EQ(first.interval.low, again.interval.low);
  EXPECT_EQ(first.interval.high, again.interval.high);
  EXPECT_NE(first.interval.high, bootstrap(waits, mean, {.seed = 2}).interval.high);
}

// Six of the 27 resamples of three values reorder them; the rounding of their mean must not count as a difference.
TEST(Bootstrap, ReorderedSampleEqualsTheEstimate) {
  const std::vector<double> three{0.1, 0.2, 0.4};
  double equal = 0, total = 0;
  const auto counted = [&](std::span<const double> x) {
    const double value = (x.front() + x[x.size() / 2] + x.back()) / 3;
    ++total;
    equal += value == (0.1 + 0.2 + 0.4) / 3;
    return value;
  };
  const BootstrapInterval result = bootstrap(three, counted);
  EXPECT_NEAR(equal / total, 6.0 / 27, sampling_error(6.0 / 27, 9999));
  EXPECT_EQ(result.method, BootstrapMethod::bca);
}

TEST(Bootstrap, ConstantDataFallsBack) {
  const BootstrapInterval result = bootstrap(std::vector<double>(6, 0.3), median);
  EXPECT_EQ(result.method, BootstrapMethod::percentile);
  EXPECT_EQ(result.interval.low, 0.3);
  EXPECT_EQ(result.interval.high, 0.3);
  EXPECT_EQ(result.standard_error, 0);
}

// No replicate reaches the estimate: the interval is that of the replicates alone.
TEST(Bootstrap, EstimateOutsideItsReplicatesFallsBack) {
  double calls = 0;
  const auto larger_at_first = [&](std::span<const double> x) { return calls++ == 0 ? 100.0 : mean(x); };
  const BootstrapInterval result = bootstrap(waits, larger_at_first, {.seed = 7, .resamples = 2000});
  EXPECT_EQ(result.method, BootstrapMethod::percentile);
  EXPECT_NEAR(result.interval.low, 1.2381304166666665, 1e-12);  // numpy.percentile(distribution, [2.5, 97.5])
  EXPECT_NEAR(result.interval.high, 3.8111277083333324, 1e-12);
}

// Normal values with mean 0.3, enough of them: bootstrap.h says what few do.
TEST(Bootstrap, CoversKnownEffect) {
  constexpr int simulations = 1000;
  const auto plain_mean = [](std::span<const double> x) {
    double sum = 0;
    for (double value : x) sum += value;
    return sum / static_cast<double>(x.size());
  };
  double covered = 0;
  for (uint64_t simulation = 0; simulation < simulations; ++simulation) {
    NormalDraws normal(stream_key(31, simulation));
    std::vector<double> sample(100);
    for (double& value : sample) value = 0.3 + normal();
    const Interval interval = bootstrap(sample, plain_mean, {.seed = simulation, .resamples = 499}).interval;
    covered += interval.low <= 0.3 && 0.3 <= interval.high;
  }
  EXPECT_NEAR(covered / simulations, 0.95, sampling_error(0.95, simulations));
}

TEST(Bootstrap, RefusesBadInput) {
  expect_refused([] { bootstrap(std::vector{1.0}, mean); }, Exit::data, "[bootstrap] too few values; got 1");
  expect_refused([] { bootstrap(std::vector{1.0, nan}, mean); }, Exit::data, "value 2 of 2 is not finite");
  expect_refused([] { bootstrap(waits, mean, {.resamples = 99}); }, Exit::usage, "resamples; got 99");
  expect_refused([] { bootstrap(waits, mean, {.level = 1.2}); }, Exit::usage, "level; got 1.2");
  const auto undefined = [](std::span<const double> x) { return 1 / (x[0] - 0.7091); };
  expect_refused([&] { bootstrap(waits, undefined); }, Exit::data, "statistic of a resample is not finite");
  expect_refused([] { bootstrap_paired(waits, std::vector{1.0, 2.0}, correlation); }, Exit::data, "got 12 and 2");
  expect_refused(
      [] {
        bootstrap_paired(std::vector{1.0, 2.0}, std::vector{1.0, inf}, correlation);
      },
      Exit::data, "not finite");
}

}  // namespace
}  // namespace normlab
