// Convergence speed: interpolated crossing of a target, and paired ratios of what it took.
#include "normlab/stats/convergence.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/stats/paired.h"

namespace normlab {

namespace {

void require_curve(std::span<const CurvePoint> curve, double target) {
  const std::string where = "convergence";
  if (!std::isfinite(target))
    throw UsageError(where, "the target loss is not finite; got nan or inf, expected a number. Choose a loss.");
  if (curve.empty())
    throw DataError(where, "the curve is empty; got 0 points, expected at least 1. Evaluate during the run.");
  for (size_t i = 0; i < curve.size(); ++i) {
    const CurvePoint& point = curve[i];
    if (!std::isfinite(point.step) || !std::isfinite(point.seconds) || !std::isfinite(point.loss))
      throw DataError(where, concat("point ", i + 1, " of ", curve.size(),
                                    " of the curve is not finite; got nan or inf, "
                                    "expected numbers. Cut the curve where the run diverged."));
    if (i > 0 && (point.step <= curve[i - 1].step || point.seconds < curve[i - 1].seconds))
      throw DataError(
          where, concat("the curve goes back at point ", i + 1, "; got step ", format_number(point.step), " at ",
                        format_number(point.seconds), " s, expected later than step ", format_number(curve[i - 1].step),
                        " at ", format_number(curve[i - 1].seconds), " s. Remove repeated points."));
  }
}

double require_cost(const Reached& reached, Cost cost) {
  const double value = cost == Cost::steps ? reached.step : reached.seconds;
  if (!(value > 0 && std::isfinite(value)))
    throw DataError("speed-up", concat("a curve reaches the target, or ends, at no cost; got ", format_number(value),
                                       cost == Cost::steps ? " steps" : " seconds",
                                       ", expected more than 0. Choose a lower target loss."));
  return value;
}

}  // namespace

std::optional<Reached> first_reached(std::span<const CurvePoint> curve, double target, Smoothing smoothing) {
  require_curve(curve, target);
  if (curve[0].loss <= target) return Reached{curve[0].step, curve[0].seconds};
  double before = curve[0].loss;
  for (size_t i = 1; i < curve.size(); ++i) {
    const CurvePoint &from = curve[i - 1], &to = curve[i];
    if (to.loss <= target) {
      const double share = (before - target) / (before - to.loss);
      return Reached{std::lerp(from.step, to.step, share), std::lerp(from.seconds, to.seconds, share)};
    }
    before = smoothing == Smoothing::running_minimum ? std::min(before, to.loss) : to.loss;
  }
  return std::nullopt;
}

Bound SpeedUp::bound() const {
  if (neither > 0 || (only_rival > 0 && only_baseline > 0)) return Bound::both;
  return only_rival > 0 ? Bound::at_least : only_baseline > 0 ? Bound::at_most : Bound::none;
}

SpeedUp speed_up(std::span<const Arrival> baseline, std::span<const Arrival> rival, Cost cost, double test_train_ratio,
                 double level) {
  if (baseline.size() != rival.size())
    throw DataError("speed-up", concat("folds must be paired; got ", baseline.size(), " and ", rival.size(),
                                       ", expected the same number. Keep the folds that both have."));
  SpeedUp result;
  std::vector<double> logs;
  for (size_t fold = 0; fold < rival.size(); ++fold) {
    const double ratio = require_cost(baseline[fold].cost, cost) / require_cost(rival[fold].cost, cost);
    result.ratios.push_back(rival[fold].reached ? ratio : std::min(ratio, 1.0));
    logs.push_back(std::log(result.ratios.back()));
    if (baseline[fold].reached && rival[fold].reached) continue;
    ++(rival[fold].reached ? result.only_rival : baseline[fold].reached ? result.only_baseline : result.neither);
  }
  if (logs.empty()) return result;
  result.factor = std::exp(mean(logs));
  if (logs.size() >= 2 && result.bound() == Bound::none) {
    const Interval log_interval = corrected_resampled_t(logs, test_train_ratio, level).interval;
    result.interval = Interval{std::exp(log_interval.low), std::exp(log_interval.high), log_interval.level};
  }
  return result;
}

}  // namespace normlab
