// Paired tests of corpus scores: a trial only adds up other rows.
#include "normlab/stats/significance.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

void require(const StatisticRows& baseline, const StatisticRows& output, const SignificanceOptions& options) {
  if (baseline.empty() || baseline.size() != output.size())
    throw DataError("paired test", concat("outputs need the same segments; got ", baseline.size(), " and ",
                                          output.size(), ", expected the same number, at least one."));
  if (options.trials < 1 || options.trials > 10'000'000)
    throw UsageError("paired test",
                     concat("wrong number of trials; got ", options.trials, ", expected 1 to 10000000."));
  require_level("paired test", options.level);
}

void add_to(std::vector<double>& sums, const std::vector<double>& row) {
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
}

// The difference that chance makes in one trial.
class Trials {
 public:
  Trials(const StatisticRows& baseline, const StatisticRows& output, const ScoreOfSums& score)
      : baseline_(baseline), output_(output), score_(score), first_(baseline[0].size()), second_(first_.size()) {}

  // As many segments as there are, drawn with replacement, the same for both outputs.
  double bootstrap(uint64_t key) {
    clear();
    for (size_t i = 0; i < baseline_.size(); ++i) {
      const size_t drawn = draw_below(key, i, baseline_.size());
      add_to(first_, baseline_[drawn]);
      add_to(second_, output_[drawn]);
    }
    return score_(second_) - score_(first_);
  }

  // The two outputs of every segment, swapped by the toss of a coin.
  double randomization(uint64_t key) {
    clear();
    for (size_t i = 0; i < baseline_.size(); ++i) {
      const bool swap = (draw_bits(key, i) >> 63) != 0;
      add_to(first_, swap ? output_[i] : baseline_[i]);
      add_to(second_, swap ? baseline_[i] : output_[i]);
    }
    return score_(second_) - score_(first_);
  }

 private:
  void clear() {
    std::ranges::fill(first_, 0);
    std::ranges::fill(second_, 0);
  }
  const StatisticRows& baseline_;
  const StatisticRows& output_;
  const ScoreOfSums& score_;
  std::vector<double> first_, second_;
};

// Of the trials and the observed difference itself, which counts as extreme.
template <class IsExtreme>
double extreme_share(const std::vector<double>& differences, IsExtreme is_extreme) {
  const auto extreme = std::ranges::count_if(differences, is_extreme);
  return static_cast<double>(extreme + 1) / static_cast<double>(differences.size() + 1);
}

}  // namespace

Significance compare_outputs(const StatisticRows& baseline, const StatisticRows& output, const ScoreOfSums& score,
                             const SignificanceOptions& options) {
  require(baseline, output, options);
  const bool bootstrap = options.test == PairedTest::bootstrap;
  Trials trials(baseline, output, score);
  std::vector<double> differences;
  for (int trial = 0; trial < options.trials; ++trial) {
    const uint64_t key = stream_key(options.seed, trial);
    differences.push_back(bootstrap ? trials.bootstrap(key) : trials.randomization(key));
  }

  Significance out{.difference = score(sum_rows(output)) - score(sum_rows(baseline))};
  const double size = std::abs(out.difference), shift = bootstrap ? out.difference : 0;
  out.p_value = extreme_share(differences, [&](double d) { return std::abs(d - shift) >= size; });
  double mean_size = 0;
  if (bootstrap)
    for (const double d : differences) mean_size += std::abs(d) / options.trials;
  out.p_sacrebleu = extreme_share(differences, [&](double d) { return std::abs(d) - mean_size > size; });
  if (bootstrap) {
    std::ranges::sort(differences);
    const double tail = (1 - options.level) / 2;
    out.interval = {sorted_quantile(differences, tail), sorted_quantile(differences, 1 - tail), options.level};
  }
  return out;
}

}  // namespace normlab
