// Analysis of a study: pairs trials by fold and seed, then asks stats/.
#include "normlab/study/analyse/analysis.h"

#include <algorithm>
#include <map>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using TrialKey = std::pair<int, int64_t>;  // fold and seed
using Trials = std::map<TrialKey, const TrialResult*>;
using ByBlock = std::map<int64_t, double>;

Trials finished_trials(const StudyResults& results, size_t variant) {
  Trials found;
  for (const TrialResult& trial : results.trials)
    if (trial.variant == variant && is_finished(trial)) found[{trial.fold, trial.seed}] = &trial;
  return found;
}

// One value a block: of a fold the mean over its seeds.
template <class Value>
ByBlock block_means(BlockKind block, const Trials& trials, const Value& value) {
  std::map<int64_t, std::vector<double>> values;
  for (const auto& [key, trial] : trials) values[number_of(block, *trial)].push_back(value(key, *trial));
  ByBlock means;
  for (const auto& [number, of_block] : values) means[number] = mean(of_block);
  return means;
}

std::vector<double> values_of(const ByBlock& blocks) {
  std::vector<double> values;
  for (const auto& [number, value] : blocks) values.push_back(value);
  return values;
}

double final_loss(const TrialKey&, const TrialResult& trial) { return trial.curve.back().loss; }

VariantSummary summarise(const StudyResults& results, size_t variant) {
  const BlockKind block = block_of(results.plan);
  VariantSummary summary;
  for (const TrialResult& trial : results.trials) {
    if (trial.variant != variant) continue;
    ++summary.planned;
    summary.finished += is_finished(trial);
    summary.diverged += trial.record.status == TrialStatus::diverged;
  }
  const Trials finished = finished_trials(results, variant);
  for (const auto& [key, trial] : finished) {
    summary.wall_seconds.push_back(trial->curve.back().wall_seconds);
    summary.cpu_seconds.push_back(trial->curve.back().cpu_seconds);
  }
  const ByBlock losses = block_means(block, finished, final_loss);
  if (losses.empty()) return summary;
  for (const auto& [number, loss] : losses) summary.blocks.push_back(number);
  summary.final_losses = values_of(losses);
  summary.mean = mean(summary.final_losses);
  if (losses.size() >= 2) summary.standard_error = standard_error(summary.final_losses);
  summary.mean_best =
      mean(values_of(block_means(block, finished, [](const TrialKey&, const TrialResult& t) { return best_loss(t); })));
  return summary;
}

Arrival mean_arrival(const std::vector<Arrival>& all) {
  Arrival result;
  for (const Arrival& each : all) {
    result.cost.step += each.cost.step / static_cast<double>(all.size());
    result.cost.seconds += each.cost.seconds / static_cast<double>(all.size());
    result.reached = result.reached && each.reached;
  }
  return result;
}

// When each block reaches its target: of a fold the mean over its seeds, and reached when all of them do.
struct Arrivals {
  std::map<int64_t, Arrival> blocks;
  bool at_start = false;  // a run begins at its target, so that speed means nothing
};
Arrivals arrivals(BlockKind block, const Trials& trials, const std::map<TrialKey, double>& targets) {
  std::map<int64_t, std::vector<Arrival>> of_blocks;
  Arrivals result;
  for (const auto& [key, trial] : trials) {
    if (!targets.contains(key)) continue;
    std::vector<CurvePoint> curve;
    for (const EvalPoint& point : trial->curve)
      curve.push_back({static_cast<double>(point.step), point.cpu_seconds, point.loss});
    const auto reached = first_reached(curve, targets.at(key));
    result.at_start = result.at_start || (reached && reached->step <= curve.front().step);
    const Reached whole{curve.back().step, curve.back().seconds};
    of_blocks[number_of(block, *trial)].push_back({reached.value_or(whole), reached.has_value()});
  }
  for (const auto& [number, all] : of_blocks) result.blocks[number] = mean_arrival(all);
  return result;
}

std::optional<Reached> mean_reached(const Arrivals& of_variant) {
  std::vector<Arrival> all;
  for (const auto& [number, arrival] : of_variant.blocks) all.push_back(arrival);
  const Arrival found = mean_arrival(all);
  return all.empty() || !found.reached ? std::nullopt : std::optional(found.cost);
}

void test_differences(Comparison& comparison, double test_train_ratio) {
  const auto& differences = comparison.differences;
  if (differences.size() < 2) return;
  const TTest t = corrected_resampled_t(differences, test_train_ratio);
  if (!t.no_spread || t.mean == 0) comparison.t = t;
  comparison.wilcoxon = wilcoxon_signed_rank(differences);
  comparison.bootstrap = bootstrap(differences, [](std::span<const double> sample) { return mean(sample); });
}

Comparison compare(const Analysis& analysis, const Trials& baseline, const Trials& rival) {
  Comparison comparison;
  Trials both;
  for (const auto& [key, trial] : rival)
    if (baseline.contains(key)) both[key] = trial;
  const ByBlock differences = block_means(analysis.block, both, [&](const TrialKey& key, const TrialResult& trial) {
    return final_loss(key, trial) - final_loss(key, *baseline.at(key));
  });
  if (differences.empty()) return comparison;
  for (const auto& [number, difference] : differences) comparison.blocks.push_back(number);
  comparison.differences = values_of(differences);
  comparison.mean = mean(comparison.differences);
  const ByBlock of_baseline = block_means(analysis.block, both, [&](const TrialKey& key, const TrialResult&) {
    return final_loss(key, *baseline.at(key));
  });
  comparison.relative = *comparison.mean / mean(values_of(of_baseline));
  test_differences(comparison, analysis.test_train_ratio);
  return comparison;
}

void add_speed_up(Comparison& comparison, const Arrivals& baseline, const Arrivals& rival, double test_train_ratio) {
  if (baseline.at_start || rival.at_start) return;
  std::vector<Arrival> of_baseline, of_rival;
  for (const auto& [number, arrival] : rival.blocks) {
    if (!baseline.blocks.contains(number)) continue;
    of_baseline.push_back(baseline.blocks.at(number));
    of_rival.push_back(arrival);
  }
  if (of_rival.empty()) return;
  const double level = comparison.adjusted ? comparison.adjusted->level : 1 - significance;
  comparison.in_steps = speed_up(of_baseline, of_rival, Cost::steps, test_train_ratio, level);
  comparison.in_seconds = speed_up(of_baseline, of_rival, Cost::seconds, test_train_ratio, level);
}

void correct_for_many(std::vector<Comparison>& comparisons) {
  std::vector<Comparison*> tested;
  std::vector<TTest> tests;
  std::vector<double> p_values;
  for (Comparison& each : comparisons)
    if (each.t) tested.push_back(&each), tests.push_back(*each.t), p_values.push_back(each.t->p_value);
  const std::vector<double> adjusted = holm(p_values);
  const std::vector<Interval> intervals = holm_intervals(tests, significance);
  for (size_t i = 0; i < tested.size(); ++i) tested[i]->holm_p = adjusted[i], tested[i]->adjusted = intervals[i];
}

// Ranks need blocks that every variant has finished; a variant that has finished none is left out.
void add_ranks(Analysis& analysis) {
  std::set<int64_t> blocks;
  for (size_t i = 0; i < analysis.variants.size(); ++i) {
    const VariantSummary& variant = analysis.variants[i];
    if (variant.blocks.empty()) continue;
    const std::set<int64_t> has(variant.blocks.begin(), variant.blocks.end());
    if (analysis.ranked.empty()) blocks = has;
    std::erase_if(blocks, [&](int64_t number) { return !has.contains(number); });
    analysis.ranked.push_back(i);
  }
  analysis.ranked_blocks = blocks.size();
  if (analysis.ranked.size() < 2 || blocks.size() < 2) return;
  std::vector<std::vector<double>> rows;
  for (const int64_t number : blocks) {
    rows.emplace_back();
    for (const size_t i : analysis.ranked) {
      const VariantSummary& variant = analysis.variants[i];
      const auto place = std::find(variant.blocks.begin(), variant.blocks.end(), number) - variant.blocks.begin();
      rows.back().push_back(variant.final_losses[static_cast<size_t>(place)]);
    }
  }
  analysis.friedman = friedman(rows);
  for (size_t i = 0; i < analysis.ranked.size(); ++i)
    analysis.variants[analysis.ranked[i]].average_rank = analysis.friedman->average_ranks[i];
}

std::map<TrialKey, double> trial_targets(const Trials& baseline, const StudyResults& results,
                                         std::optional<double> target) {
  std::map<TrialKey, double> targets;
  for (const auto& [key, trial] : baseline) targets[key] = trial->curve.back().loss;
  if (!target) return targets;
  for (const TrialResult& trial : results.trials) targets[{trial.fold, trial.seed}] = *target;
  return targets;
}

}  // namespace

BlockKind block_of(const Plan& plan) {
  return plan.folds.size() == 1 && plan.seeds.size() > 1 ? BlockKind::seed : BlockKind::fold;
}
const char* name_of(BlockKind block) { return block == BlockKind::fold ? "fold" : "seed"; }
int64_t number_of(BlockKind block, const TrialResult& trial) {
  return block == BlockKind::fold ? trial.fold : trial.seed;
}

Analysis analyse(const StudyResults& results, const AnalysisOptions& options) {
  const Plan& plan = results.plan;
  Analysis analysis{.baseline = options.baseline.empty() ? plan.baseline
                                                         : find_variant(plan.variants, options.baseline, "--baseline"),
                    .target = options.target};
  analysis.block = block_of(results.plan);
  if (analysis.block == BlockKind::fold)
    analysis.test_train_ratio = 1.0 / (results.plan.trials.front().config.data.folds - 1);
  const Trials baseline = finished_trials(results, analysis.baseline);
  const auto targets = trial_targets(baseline, results, options.target);
  std::vector<Arrivals> of_variants;
  for (size_t i = 0; i < results.plan.variants.size(); ++i) {
    const Trials trials = finished_trials(results, i);
    const Arrivals& of_variant = of_variants.emplace_back(arrivals(analysis.block, trials, targets));
    if (options.target && of_variant.at_start)
      throw UsageError("--target", concat("'", results.plan.variants[i].label, "' starts at this loss; got ",
                                          *options.target, ", expected less than the loss before training."));
    analysis.variants.push_back(summarise(results, i));
    analysis.variants.back().reached = mean_reached(of_variant);
    const auto& only = options.only;
    if (i == analysis.baseline || (!only.empty() && std::find(only.begin(), only.end(), i) == only.end())) continue;
    analysis.comparisons.push_back(compare(analysis, baseline, trials));
    analysis.comparisons.back().variant = i;
  }
  correct_for_many(analysis.comparisons);
  for (Comparison& each : analysis.comparisons)
    add_speed_up(each, of_variants[analysis.baseline], of_variants[each.variant], analysis.test_train_ratio);
  add_ranks(analysis);
  return analysis;
}

bool differs(const Comparison& comparison) { return comparison.holm_p && *comparison.holm_p <= significance; }

const Comparison* best_comparison(const Analysis& analysis) {
  const Comparison *lowest = nullptr, *shown = nullptr;
  for (const Comparison& comparison : analysis.comparisons) {
    if (!comparison.mean) continue;
    if (!lowest || *comparison.mean < *lowest->mean) lowest = &comparison;
    if (differs(comparison) && *comparison.mean < 0 && (!shown || *comparison.mean < *shown->mean)) shown = &comparison;
  }
  return shown ? shown : lowest;
}

}  // namespace normlab
