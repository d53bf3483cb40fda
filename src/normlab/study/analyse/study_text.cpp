// Words of a study.
#include "normlab/study/analyse/study_text.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "normlab/base/text.h"

namespace normlab {

std::optional<double> median_if_any(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(median(values));
}

std::string p_text(double p_value) {
  if (p_value < 0.001) return "below 0.001";
  // Rounding must not put it on the other side of the level: 0.0504 is not 0.050.
  const auto counts = [](double p) { return p <= significance; };
  for (int digits = 2;; ++digits)
    if (const std::string text = significant(p_value, digits);
        digits == 17 || counts(*parse_number(text)) == counts(p_value))
      return text;
}

std::string interval_name(const Analysis& analysis) {
  const auto tested = std::count_if(analysis.comparisons.begin(), analysis.comparisons.end(),
                                    [](const Comparison& each) { return each.adjusted.has_value(); });
  return tested > 1 ? "adjusted 95 % interval" : "95 % interval";
}

std::string bound_sign(const SpeedUp& speed) {
  constexpr const char* signs[] = {"", "\xE2\x89\xA4 ", "\xE2\x89\xA5 ", "\xE2\x89\x88 "};  // in the order of Bound
  return signs[static_cast<size_t>(speed.bound())];
}

std::string trial_name(const StudyResults& results, const TrialResult& trial) {
  return concat(results.plan.variants[trial.variant].label, ", fold ", trial.fold,
                results.plan.seeds.size() > 1 ? concat(", seed ", trial.seed) : "");
}

std::string progress_text(const StudyResults& results) {
  std::map<TrialStatus, size_t> counts;
  for (const TrialResult& trial : results.trials) ++counts[trial.record.status];
  std::string text = concat(counts[TrialStatus::finished], " of ", plural(results.trials.size(), "trial"), " finished");
  for (const TrialStatus status :
       {TrialStatus::diverged, TrialStatus::started, TrialStatus::missing, TrialStatus::crashed, TrialStatus::damaged})
    if (counts[status] > 0) text += concat(", ", counts[status], " ", name_of(status));
  return text;
}

// Within a sentence the comma of "p = 3, gain_init = matched" would part what belongs together.
std::string spoken_label(const StudyResults& results, size_t variant) {
  return replace_all(results.plan.variants[variant].label, ", ", " with ");
}

std::string title_of(const Plan& plan) {
  if (!plan.spec.study.title.empty()) return plan.spec.study.title;
  return std::filesystem::weakly_canonical(plan.folder).filename().string();
}

std::string subtitle_of(const StudyResults& results) {
  const Plan& plan = results.plan;
  return concat(
      plan.variants.size(), " variants \xC3\x97 ", plan.folds.size(), plan.folds.size() == 1 ? " fold" : " folds",
      plan.seeds.size() > 1 ? concat(" \xC3\x97 ", plan.seeds.size(), " seeds") : "", ": ", progress_text(results));
}

namespace {

// "400", "206k", or "206k to 1.2M" where variants differ.
std::string range_text(const std::vector<double>& values) {
  const auto shown = [](double value) { return value < 10000 ? fixed(value, 0) : si(value); };
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low == *high ? shown(*low) : concat(shown(*low), " to ", shown(*high));
}

}  // namespace

std::string setup_text(const StudyResults& results) {
  std::vector<double> layers, widths, steps, tokens, parameters;
  std::set<std::string> schemes;
  for (const Trial& trial : results.plan.trials) {
    const Config& config = trial.config;
    schemes.insert(scheme_label(results.plan.spec, config.norm.name));
    layers.push_back(config.model.n_layers);
    widths.push_back(config.model.d_model);
    steps.push_back(static_cast<double>(config.train.max_steps));
    tokens.push_back(config.train.accumulate * (config.translation.wanted()
                                                    ? static_cast<double>(config.translation.batch_tokens)
                                                    : double{1} * config.train.batch_size * config.model.seq_len));
  }
  for (const TrialResult& trial : results.trials)
    if (trial.record.parameters > 0) parameters.push_back(static_cast<double>(trial.record.parameters));
  const Config& first = results.plan.trials.front().config;
  std::vector<std::string> parts;
  if (schemes.size() == 1) parts.push_back(concat("scheme ", *schemes.begin()));
  parts.push_back(concat(range_text(layers), " layers of width ", range_text(widths),
                         parameters.empty() ? "" : concat(", ", range_text(parameters), " parameters")));
  parts.push_back(concat(range_text(steps), " steps of ", range_text(tokens), " tokens"));
  parts.push_back(concat(std::filesystem::path(first.data.source).filename().string(),
                         first.translation.wanted()
                             ? concat(", ", first.translation.source, " to ", first.translation.target)
                         : first.data.tokenizer == TokenUnit::bytes    ? " by bytes"
                         : first.data.tokenizer == TokenUnit::subwords ? " by subwords"
                                                                       : " by characters"));
  for (const std::string& machine : results.provenance.machines) parts.push_back(machine);
  return concat(join(parts, "; "), ".");
}

std::string commands(const StudyResults& results, const Analysis& analysis) {
  const Plan& plan = results.plan;
  const std::string folder = plan.folder.string();
  std::string report = "normlab report repeated";
  if (analysis.baseline != plan.baseline)
    report += concat(" --baseline '", plan.variants[analysis.baseline].label, "'");
  if (analysis.target && *analysis.target != plan.spec.study.target_loss)
    report += concat(" --target ", format_number(*analysis.target));
  return concat("normlab compare --config ", folder, "/study.toml --out repeated\n", report);
}

std::vector<std::string> provenance_lines(const Provenance& provenance) {
  const auto list = [](const std::set<std::string>& items) {
    return join(std::vector<std::string>(items.begin(), items.end()), "; ");
  };
  if (provenance.first_start.empty()) return {};
  return {list(provenance.machines), concat(list(provenance.versions), ", ", list(provenance.kernels)),
          concat("Trials started from ", provenance.first_start, " to ", provenance.last_start, ".")};
}

}  // namespace normlab
