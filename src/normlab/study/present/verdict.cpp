// The verdict of a study, in words.
#include "normlab/study/present/verdict.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/scale.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

constexpr int decimals_without_interval = 3;

// The interval is the mean and as much to either side.
double half_width(const Interval& interval) { return (interval.high - interval.low) / 2; }

// Two digits of the interval's half-width, and more only where a difference would not be seen to exclude 0.
int decimals_of(const Comparison& comparison) {
  if (!comparison.adjusted) return decimals_without_interval;
  const double half = half_width(*comparison.adjusted), mean = std::fabs(*comparison.mean);
  int decimals = supported_decimals(half);
  while (differs(comparison) && decimals < 6 && fixed(mean, decimals) == fixed(half, decimals)) ++decimals;
  return decimals;
}

// "0.020 ± 0.001 nats"; without an interval the difference alone.
std::string amount_text(const Comparison& comparison, bool with_sign) {
  const int decimals = decimals_of(comparison);
  const double mean = *comparison.mean;
  const std::string size = with_sign ? signed_number(mean, decimals) : fixed(std::fabs(mean), decimals);
  if (!comparison.adjusted) return concat(size, " nats");
  return concat(size, " \xC2\xB1 ", fixed(half_width(*comparison.adjusted), decimals), " nats");
}

// The relative size of a difference that was shown, as exact as its interval allows.
std::string relative_text(const Comparison& comparison) {
  const double percent = std::fabs(100 * *comparison.relative);
  const double half = half_width(*comparison.adjusted) * percent / std::fabs(*comparison.mean);
  const int decimals = half > 0 ? std::clamp(-static_cast<int>(std::floor(std::log10(half))), 0, 2) : 1;
  return concat(" (", fixed(percent, decimals), " %)");
}

bool is_adjusted(const Analysis& analysis) { return interval_name(analysis).starts_with("adjusted"); }
std::string p_name(const Analysis& analysis) { return is_adjusted(analysis) ? "adjusted p-value" : "p-value"; }

// "over 3 folds (adjusted 95 % interval; adjusted p-value 0.98)"
std::string basis_text(const Analysis& analysis, const Comparison& comparison) {
  const std::string name = name_of(analysis.block);
  if (comparison.blocks.size() < 2) return concat("in one ", name, ", which does not show whether this is chance");
  const std::string blocks = plural(comparison.blocks.size(), name);
  if (!comparison.t) return concat("in each of ", blocks, ", so there is nothing to test");
  return concat("over ", blocks, " (", interval_name(analysis), "; ", p_name(analysis), " ", p_text(*comparison.holm_p),
                ")");
}

// A difference this small beside its interval is a tie; a larger one that the test does not show may be chance.
bool ties(const Comparison& comparison) {
  return !differs(comparison) && comparison.adjusted &&
         std::fabs(*comparison.mean) <= half_width(*comparison.adjusted) / 3;
}

std::string answer(const StudyResults& results, const Analysis& analysis, const Comparison* best) {
  const std::string baseline = spoken_label(results, analysis.baseline);
  const auto finished = std::count_if(results.trials.begin(), results.trials.end(), is_finished);
  if (finished == 0) return concat("No trial has finished yet: 0 of ", plural(results.trials.size(), "trial"), ".");
  if (!best)
    return concat("No comparison is possible yet: no ", name_of(analysis.block), " is finished both for the baseline, ",
                  baseline, ", and for another variant.");
  const std::string rival = spoken_label(results, best->variant), basis = basis_text(analysis, *best);
  const bool lower = *best->mean < 0;
  if (*best->mean == 0) return concat(rival, " and ", baseline, " have exactly the same final loss ", basis, ".");
  if (ties(*best))
    return concat("Nothing beats ", baseline, " here; ", rival, " ties with it: difference ", amount_text(*best, true),
                  " ", basis, ".");
  if (!lower)
    return concat("Nothing beats ", baseline, " here; the nearest, ", rival, ", has a final loss ",
                  amount_text(*best, false), " higher ", basis, ".");
  if (differs(*best))
    return concat(rival, " beats ", baseline, ": its final loss is ", amount_text(*best, false), relative_text(*best),
                  " lower ", basis, ".");
  if (!best->t)
    return concat(rival, " has a final loss ", amount_text(*best, false), " lower than ", baseline, " ", basis, ".");
  return concat("Nothing is shown to beat ", baseline, ": the lowest, ", rival, ", has a final loss ",
                amount_text(*best, false), " lower, which may be chance, ", basis, ".");
}

std::string list_of(const StudyResults& results, const Analysis& analysis, bool better, const Comparison* best) {
  std::vector<std::string> names;
  for (const Comparison& comparison : analysis.comparisons)
    if (differs(comparison) && (*comparison.mean < 0) == better && (!better || &comparison != best))
      names.push_back(spoken_label(results, comparison.variant));
  return join(names, "; ");
}

// No more digits than its interval supports; two where there is none.
std::string factor_text(const Analysis& analysis, const SpeedUp& speed) {
  constexpr const char* bounds[] = {"", "at most ", "at least ", "about "};  // in the order of Bound
  const std::string interval = speed.interval
                                   ? concat(" (", interval_name(analysis), " ", fixed(speed.interval->low, 2), " to ",
                                            fixed(speed.interval->high, 2), ")")
                                   : "";
  return concat(bounds[static_cast<size_t>(speed.bound())], fixed(*speed.factor, 2), "x", interval);
}

std::string speed_text(const StudyResults& results, const Analysis& analysis, const Comparison& best) {
  if (!best.in_steps) return "";
  const SpeedUp& steps = *best.in_steps;
  const std::string goal = analysis.target ? concat("a validation loss of ", format_number(*analysis.target))
                                           : concat("the final loss of ", spoken_label(results, analysis.baseline));
  const std::string factors = concat(factor_text(analysis, steps), " in steps and ",
                                     factor_text(analysis, *best.in_seconds), " in processor time");
  const std::string name = name_of(analysis.block);
  const std::string in_some = concat(spoken_label(results, best.variant), " reaches ", goal, " in ",
                                     steps.bound() == Bound::none ? "all " : concat(steps.reached(), " of "),
                                     plural(steps.ratios.size(), name));
  if (steps.bound() == Bound::none) return concat(in_some, ", with a speed-up of ", factors, ".");
  if (steps.reached() == 0) return concat(in_some, ".");
  const std::string others = steps.reached() == steps.ratios.size()
                                 ? concat("the baseline does not reach it in ", plural(steps.only_rival, name))
                                 : concat("with the other ", name, "s counted as not faster");
  return concat(in_some, "; ", others, ", the speed-up is ", factors, ".");
}

std::string detail(const StudyResults& results, const Analysis& analysis, const Comparison* best) {
  if (!best) return "";
  std::vector<std::string> parts;
  const std::string better = list_of(results, analysis, true, best), worse = list_of(results, analysis, false, best);
  if (!better.empty()) parts.push_back(concat("Also better: ", better, "."));
  if (!worse.empty()) parts.push_back(concat("Worse: ", worse, "."));
  const std::string speed = speed_text(results, analysis, *best);
  if (!speed.empty()) parts.push_back(speed);
  return join(parts, " ");
}

// Each states what it rests on.
std::vector<KeyFigure> key_figures(const StudyResults& results, const Analysis& analysis, const Comparison* best) {
  std::vector<KeyFigure> figures;
  if (!best) return figures;
  const std::string name = name_of(analysis.block), blocks = plural(best->blocks.size(), name);
  figures.push_back({amount_text(*best, true), concat("final validation loss of ", spoken_label(results, best->variant),
                                                      " against ", spoken_label(results, analysis.baseline), "; ",
                                                      best->t ? concat(interval_name(analysis), " over ", blocks)
                                                              : concat(blocks, ", no interval"))});
  if (best->t)
    figures.push_back({concat("p-value ", p_text(*best->holm_p)),
                       is_adjusted(analysis)
                           ? concat("of this difference, adjusted for ",
                                    plural(analysis.comparisons.size(), "comparison"), " (Holm); ", blocks)
                           : concat("of this difference, paired t-test over ", blocks)});
  if (best->in_steps && best->in_steps->reached() > 0) {
    const SpeedUp& speed = *best->in_steps;
    const std::string goal =
        analysis.target ? concat("to a loss of ", format_number(*analysis.target)) : "to the baseline's final loss";
    const std::string reached = speed.bound() == Bound::none
                                    ? concat("reached in all ", plural(speed.ratios.size(), name))
                                    : concat("reached in ", speed.reached(), " of ", plural(speed.ratios.size(), name));
    figures.push_back(
        {concat(bound_sign(speed), fixed(*speed.factor, 2), "x"), concat("speed-up in steps ", goal, ", ", reached)});
  }
  return figures;
}

void add_progress_notice(std::vector<std::string>& notices, const StudyResults& results) {
  constexpr size_t named = 5;
  std::vector<std::string> troubles;
  bool all_ended = true;
  for (const TrialResult& trial : results.trials) {
    const TrialStatus status = trial.record.status;
    all_ended = all_ended && (status == TrialStatus::finished || status == TrialStatus::diverged);
    if (status != TrialStatus::crashed && status != TrialStatus::damaged) continue;
    troubles.push_back(concat(trial_name(results, trial), " ", name_of(status),
                              trial.record.message.empty() ? "" : concat(": ", trial.record.message)));
  }
  if (!all_ended)
    notices.push_back(concat("The study is not complete: ", progress_text(results),
                             ". This report uses the finished trials. To run the missing ones: "
                             "normlab compare --out ",
                             results.plan.folder.string()));
  if (troubles.size() > named) {
    const size_t more = troubles.size() - named;
    troubles.resize(named);
    troubles.push_back(concat("and ", more, " more, listed in trials.csv"));
  }
  for (std::string& trouble : troubles) notices.push_back(std::move(trouble));
}

void add_doubts(std::vector<std::string>& notices, const StudyResults& results, const Analysis& analysis) {
  for (size_t i = 0; i < analysis.variants.size(); ++i) {
    const VariantSummary& variant = analysis.variants[i];
    if (variant.diverged > 0)
      notices.push_back(concat(spoken_label(results, i), " diverged in ", variant.diverged, " of ",
                               plural(variant.planned, "trial"),
                               ". These trials are excluded from every mean, which favours this variant."));
  }
  const bool by_seed = analysis.block == BlockKind::seed;
  const size_t blocks = by_seed ? results.plan.seeds.size() : results.plan.folds.size();
  const std::string name = name_of(analysis.block);
  if (by_seed)
    notices.push_back(
        "The study has one fold: its intervals and tests are over seeds and do not cover other validation text.");
  if (blocks == 1)
    notices.push_back("The study has one fold and one seed, which give no intervals and no tests.");
  else if (blocks < 6)
    notices.push_back(concat("With ", blocks, " ", name, "s Wilcoxon's exact test cannot give a p-value below ",
                             significant(std::pow(2.0, 1.0 - static_cast<double>(blocks)), 3),
                             ", and intervals are wide. Ten ", name, "s are a better basis for a claim."));
  if (results.provenance.versions.size() > 1 || results.provenance.machines.size() > 1)
    notices.push_back(
        "Trials were run by several versions of the program or on several machines: do not compare their times.");
  if (results.without_gains > 0)
    notices.push_back(concat("The checkpoints of ", plural(results.without_gains, "finished trial"),
                             " cannot be read: their learned gains are missing here, but their losses are included."));
}

}  // namespace

Verdict verdict(const StudyResults& results, const Analysis& analysis) {
  const Comparison* best = best_comparison(analysis);
  Verdict found{.sentence = answer(results, analysis, best),
                .detail = detail(results, analysis, best),
                .figures = key_figures(results, analysis, best),
                .notices = {}};
  add_progress_notice(found.notices, results);
  add_doubts(found.notices, results, analysis);
  return found;
}

}  // namespace normlab
