// The verdict of a study, in words.
#include "normlab/study/present/verdict.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/scale.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

// Decimals that give a difference two significant digits, and its interval as many.
int decimals_for(double difference) {
  const double size = std::fabs(difference);
  return size > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(size))), 2, 6) : 3;
}

int decimals_for(double difference, const Interval& interval) {
  return interval_decimals(interval.low, interval.high, decimals_for(difference));
}

std::string amount(double value, int decimals) { return with_minus(fixed(value, decimals)); }

// "0.012 to 0.030": of a gain when the difference is one, so that the numbers agree with the word "below".
std::string size_of_gain(const Interval& interval, double mean, int decimals) {
  const bool below = mean < 0;
  return concat(amount(below ? -interval.high : interval.low, decimals), " to ",
                amount(below ? -interval.low : interval.high, decimals));
}

std::string difference_text(const Comparison& comparison) {
  return concat(amount(std::fabs(*comparison.mean), decimals_for(*comparison.mean)), " nats (",
                fixed(std::fabs(100 * *comparison.relative), 1), " %) ", *comparison.mean < 0 ? "below" : "above");
}

std::string evidence_text(const Analysis& analysis, const Comparison& comparison) {
  const BlockKind block = analysis.block;
  const std::string blocks = plural(comparison.blocks.size(), name_of(block));
  if (!comparison.t) {
    return comparison.blocks.size() < 2
               ? concat("; one ", name_of(block), ", which does not show whether this is chance")
               : concat("; the same difference in all ", blocks, ", so there is nothing to test");
  }
  const int decimals = decimals_for(*comparison.mean, *comparison.adjusted);
  return concat("; ", interval_name(analysis), " ", size_of_gain(*comparison.adjusted, *comparison.mean, decimals),
                "; Holm-corrected p ", p_text(*comparison.holm_p), "; ", blocks);
}

std::string answer(const StudyResults& results, const Analysis& analysis, const Comparison* best) {
  const std::string baseline = spoken_label(results, analysis.baseline);
  const auto finished = std::count_if(results.trials.begin(), results.trials.end(), is_finished);
  if (finished == 0) return concat("No trial has finished yet: 0 of ", plural(results.trials.size(), "trial"), ".");
  if (!best)
    return concat("No comparison is possible yet: no ", name_of(analysis.block), " is finished both for the baseline, ",
                  baseline, ", and for another variant.");
  const std::string rival = spoken_label(results, best->variant),
                    evidence = concat(evidence_text(analysis, *best), ".");
  if (*best->mean == 0) return concat(rival, " and ", baseline, " have exactly the same final loss", evidence);
  if (*best->mean > 0)
    return concat("No variant has a lower final loss than ", baseline, ": the nearest, ", rival, ", is ",
                  difference_text(*best), " it", evidence);
  if (!best->t || differs(*best))
    return concat(rival, " has a final loss ", difference_text(*best), " that of ", baseline, evidence);
  return concat("No variant is significantly better than ", baseline, ": the lowest, ", rival, ", is ",
                difference_text(*best), " it, which may be chance", evidence);
}

std::string list_of(const StudyResults& results, const Analysis& analysis, bool better, const Comparison* best) {
  std::vector<std::string> names;
  for (const Comparison& comparison : analysis.comparisons)
    if (differs(comparison) && (*comparison.mean < 0) == better && (!better || &comparison != best))
      names.push_back(spoken_label(results, comparison.variant));
  return join(names, "; ");
}

std::string factor_text(const Analysis& analysis, const SpeedUp& speed) {
  constexpr const char* bounds[] = {"", "at most ", "at least ", "about "};  // in the order of Bound
  const std::string interval = speed.interval
                                   ? concat(" (", interval_name(analysis), " ", significant(speed.interval->low, 3),
                                            " to ", significant(speed.interval->high, 3), ")")
                                   : "";
  return concat(bounds[static_cast<size_t>(speed.bound())], significant(*speed.factor, 3), "x", interval);
}

std::string speed_text(const StudyResults& results, const Analysis& analysis, const Comparison& best) {
  if (!best.in_steps) return "";
  const SpeedUp& steps = *best.in_steps;
  const std::string goal = analysis.target ? concat("a validation loss of ", format_number(*analysis.target))
                                           : concat("the final loss of ", spoken_label(results, analysis.baseline));
  const std::string factors = concat(factor_text(analysis, steps), " in steps and ",
                                     factor_text(analysis, *best.in_seconds), " in processor time");
  const std::string name = name_of(analysis.block),
                    reaches = concat(spoken_label(results, best.variant), " reaches ", goal);
  if (steps.bound() == Bound::none) return concat(reaches, " with a speed-up of ", factors, ".");
  const std::string in_some = concat(reaches, " in ", steps.reached(), " of ", plural(steps.ratios.size(), name));
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

std::vector<KeyFigure> key_figures(const StudyResults& results, const Analysis& analysis, const Comparison* best) {
  std::vector<KeyFigure> figures;
  if (!best) return figures;
  const std::string rival = spoken_label(results, best->variant);
  const int decimals = decimals_for(*best->mean);
  figures.push_back({concat(signed_number(*best->mean, decimals), " nats"),
                     concat(rival, " against ", spoken_label(results, analysis.baseline), ", final validation loss")});
  if (best->t) {
    const Interval& interval = *best->adjusted;
    const int places = decimals_for(*best->mean, interval);
    figures.push_back({concat(signed_number(interval.low, places), " to ", signed_number(interval.high, places)),
                       concat(interval_name(analysis), " of this difference")});
    figures.push_back({concat("p ", p_text(*best->holm_p)),
                       concat("Holm-corrected for ", plural(analysis.comparisons.size(), "comparison"))});
  }
  if (best->in_steps && best->in_steps->reached() > 0) {
    const SpeedUp& speed = *best->in_steps;
    const std::string goal =
        analysis.target ? concat("to a loss of ", format_number(*analysis.target)) : "to the baseline's final loss";
    const std::string in_some =
        speed.bound() == Bound::none
            ? ""
            : concat("; ", speed.reached(), " of ", plural(speed.ratios.size(), name_of(analysis.block)), " reach it");
    figures.push_back(
        {concat(bound_sign(speed), significant(*speed.factor, 3), "x"), concat("speed-up in steps ", goal, in_some)});
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
    notices.push_back(concat("With ", blocks, " ", name, "s Wilcoxon's exact test cannot fall below p = ",
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
