#include "normlab/stats/critical_batch.h"

#include <gtest/gtest.h>

#include "draws.h"
#include "refusal.h"

namespace normlab {
namespace {

constexpr BatchLaw truth{.steps_min = 400, .tokens_min = 3.2e6};  // critical: 8,000 tokens

std::vector<BatchPoint> points_of(double noise, uint64_t key) {
  NormalDraws normal(key);
  std::vector<BatchPoint> points;
  for (double batch = 1000; batch <= 64000; batch *= 2)
    points.push_back({batch, truth.steps(batch) * std::exp(noise * normal())});
  return points;
}

TEST(CriticalBatch, RecoversCoefficientsWithoutNoise) {
  const LawFit<BatchLaw> fit = fit_critical_batch(points_of(0, 1), {.resamples = 0});
  EXPECT_NEAR(fit.law.steps_min, 400, 2);
  EXPECT_NEAR(fit.law.tokens_min, 3.2e6, 2e4);
  EXPECT_NEAR(fit.law.critical(), 8000, 80);
}

TEST(CriticalBatch, IntervalsCoverAtTheirRate) {
  constexpr int simulations = 100;
  int covered = 0;
  for (int simulation = 0; simulation < simulations; ++simulation) {
    const auto fit = fit_critical_batch(points_of(0.03, stream_key(1, simulation)),
                                        {.resamples = 200, .seed = stream_key(2, simulation)});
    const Interval interval = fit.interval([](const BatchLaw& law) { return law.critical(); });
    covered += interval.low <= truth.critical() && truth.critical() <= interval.high;
  }
  EXPECT_GE(covered / double{simulations}, 0.95 - sampling_error(0.95, simulations));
}

TEST(CriticalBatch, Refusals) {
  const auto refused = [](std::vector<BatchPoint> points, const std::string& text) {
    expect_refused([&] { fit_critical_batch(points); }, Exit::data, text);
  };
  refused({{1e3, 5}, {2e3, 4}, {4e3, 3}, {4e3, 3}}, "got 3 batch sizes");
  refused({{1e3, 5}, {2e3, 4}, {4e3, 3}, {8e3, 0}}, "got 0 steps");
}

}  // namespace
}  // namespace normlab
