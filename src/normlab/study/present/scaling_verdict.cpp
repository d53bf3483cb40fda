// The finding of a scaling analysis, in two sentences.
#include "normlab/study/present/scaling_verdict.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/scale.h"
#include "normlab/study/run/plan.h"

namespace normlab {
namespace {

bool shown(const Interval& interval) { return interval.low > 0 || interval.high < 0; }

// "0.085 nats (95 % interval 0.049 to 0.12)", with no more digits than the interval supports.
std::string amount(double value, const Interval& interval, std::string_view unit) {
  if (!std::isfinite(interval.high - interval.low)) return concat(with_minus(significant(value, 2)), unit);
  const int decimals = supported_decimals((interval.high - interval.low) / 2);
  const auto text = [&](double number) { return with_minus(fixed(number, decimals)); };
  return concat(text(value), unit, " (95 % interval ", text(interval.low), " to ", text(interval.high), ")");
}

// "a 0.085 nats higher loss than gpt+ (...)"; the interval is turned with the sign.
std::string difference(double value, const Interval& interval, const std::string& baseline) {
  const bool lower = value < 0;
  const Interval turned = lower ? Interval{-interval.high, -interval.low} : interval;
  return concat("its loss is ", lower ? "lower" : "higher", " than that of ", baseline, " by ",
                amount(std::abs(value), turned, " nats"));
}

// The rival with the lowest loss among those that were paired with the first scheme.
std::string same_size_sentence(const ScalingAnalysis& analysis) {
  const SameSize& best = *std::min_element(analysis.same_size.begin(), analysis.same_size.end(),
                                           [](const auto& a, const auto& b) { return a.test.mean < b.test.mean; });
  const std::string &rival = analysis.schemes[best.scheme].scheme, &baseline = analysis.schemes.front().scheme;
  const std::string pairs =
      concat(" in ", plural(best.differences.size(), "pair"), " of runs of equal size and length");
  if (shown(best.test.interval))
    return concat(best.test.mean < 0 ? concat(rival, " beats ", baseline) : concat(rival, " does not reach ", baseline),
                  pairs, ": ", difference(best.test.mean, best.test.interval, baseline), ".");
  return concat(rival, " and ", baseline, " do not differ beyond chance", pairs, ": difference ",
                amount(best.test.mean, best.test.interval, " nats"), ".");
}

std::string projection_sentence(const ScalingAnalysis& analysis, const Projection& projection) {
  const std::string &rival = analysis.schemes[projection.scheme].scheme, &baseline = analysis.schemes.front().scheme;
  const Estimate& loss = projection.advantage.loss_difference;
  const std::string where = projection.multiple > 1 ? concat("Extrapolated to ", projection.multiple,
                                                             " times the compute of the largest run, ")
                                                    : std::string("At the compute of the largest run ");
  if (!shown(loss.interval))
    return concat(where, "the fitted laws do not settle which of ", rival, " and ", baseline, " is better: difference ",
                  amount(loss.value, loss.interval, " nats"), ".");
  return concat(where, "the best ", rival, " is expected ", loss.value < 0 ? "ahead" : "behind", ": ",
                difference(loss.value, loss.interval, baseline), ".");
}

std::string comparison(const ScalingAnalysis& analysis) {
  const auto at = [&](double multiple) {
    std::string out;
    const Projection* best = nullptr;
    for (const Projection& each : analysis.projections)
      if (each.multiple == multiple &&
          (!best || each.advantage.loss_difference.value < best->advantage.loss_difference.value))
        best = &each;
    return best ? projection_sentence(analysis, *best) : out;
  };
  const std::string first = analysis.same_size.empty() ? at(1) : same_size_sentence(analysis), second = at(100);
  return concat(first, first.empty() || second.empty() ? "" : " ", second);
}

std::string one_law(const SchemeFit& scheme) {
  constexpr double multiple = 10;
  double largest = 0;
  for (const ScalingRun& run : scheme.runs) largest = std::max(largest, run_flops(scheme, run));
  const auto best = [&](const ScalingLaw& law) {
    return optimum(law, multiple * largest, scheme.flops_per_param_token);
  };
  const auto exponent = [&](double ScalingLaw::*member) {
    const auto value = [&](const ScalingLaw& law) { return law.*member; };
    return amount(value(scheme.fit.law), scheme.fit.interval(value), "");
  };
  const auto loss = [&](const ScalingLaw& law) { return best(law).loss; };
  const Optimum at = best(scheme.fit.law);
  return concat(
      "The law fits ", plural(scheme.runs.size(), "run"), " within ", significant(100 * scheme.fit.goodness.rms, 2),
      " % (root mean square): loss falls with parameters to the ", exponent(&ScalingLaw::exp_params),
      " and with tokens to the ", exponent(&ScalingLaw::exp_tokens), ". Extrapolated to ", multiple,
      " times the compute of the largest run, ", si(at.n_params), " parameters on ", si(at.n_tokens),
      " tokens are best, with a loss of ", amount(loss(scheme.fit.law), scheme.fit.interval(loss), " nats"), ".");
}

}  // namespace

std::string scaling_verdict(const ScalingAnalysis& analysis) {
  if (analysis.schemes.empty()) return "Critical batch sizes only: there are too few sizes or horizons for a law.";
  if (analysis.schemes.size() > 1)
    if (const std::string text = comparison(analysis); !text.empty()) return text;
  return one_law(analysis.schemes.front());
}

}  // namespace normlab
