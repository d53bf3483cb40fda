#include "normlab/study/run/tuning.h"

#include <algorithm>
#include <limits>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/study/run/trial.h"

namespace normlab {
namespace {

// In the order of the configuration, as a study has them.
void sort_by_field(std::vector<Setting>& settings) {
  Config scratch;
  const FieldList list = fields(scratch);
  const auto place = [&](const Setting& setting) { return &list.at(setting.key, setting.where); };
  std::sort(settings.begin(), settings.end(), [&](const Setting& a, const Setting& b) { return place(a) < place(b); });
}

// The study in DIR/tuning: a variant for each value of each variant.
StudySpec tuning_spec(const Plan& plan, const std::vector<TunedVariant>& grids) {
  const TuneConfig& tune = plan.spec.tune;
  StudySpec spec{.study = {}, .settings = {}, .ladder = {}, .variants = {}, .version = plan.spec.version};
  spec.study.title = concat("Tuning of ", tune.key);
  for (Setting each : plan.spec.ladder) {  // a variant has its own rung; the first one stays the ladder's reference
    each.values.resize(1);
    each.is_list = false;
    spec.ladder.push_back(each);
  }
  for (const Setting& each : plan.spec.settings)
    if (!each.is_list && each.key != fold_key && each.key != seed_key) spec.settings.push_back(each);
  spec.settings.push_back(study_setting(fold_key, concat(plan.folds.front())));
  spec.settings.push_back(study_setting(seed_key, concat(tune.seed)));
  sort_by_field(spec.settings);
  for (size_t v = 0; v < plan.variants.size(); ++v)
    for (const std::string& value : grids[v].values) {
      const std::string label =
          concat(plan.variants[v].name, ", ", tune.key.substr(tune.key.find('.') + 1), " = ", value);
      spec.variants.push_back({.label = label, .settings = plan.variants[v].settings});
      spec.variants.back().settings.push_back(study_setting(tune.key, value));
    }
  return spec;
}

double tuning_loss(const TrialRecord& record) {
  if (!record.ended()) return std::numeric_limits<double>::quiet_NaN();
  return record.status == TrialStatus::finished && record.val_loss ? *record.val_loss
                                                                   : std::numeric_limits<double>::infinity();
}

// Reads the losses of the tuning trials, which the plan has in the order of the grids.
void read_losses(const Plan& tuning, std::vector<TunedVariant>& grids) {
  size_t next = 0;
  for (TunedVariant& grid : grids) {
    grid.losses.clear();
    for (size_t i = 0; i < grid.values.size(); ++i)
      grid.losses.push_back(tuning_loss(read_trial(tuning.trials[next++])));
    grid.best = best_value(grid.losses);
  }
}

}  // namespace

void check_tune(const Plan& plan) {
  const TuneConfig& tune = plan.spec.tune;
  for (const int64_t seed : plan.seeds)
    if (seed == tune.seed)
      throw UsageError("study.tune.seed", concat("got ", seed, ", which the study itself uses; choose another."));
  const Setting* listed = find_setting(plan.spec.settings, tune.key);
  const bool in_variant = std::any_of(plan.spec.variants.begin(), plan.spec.variants.end(), [&](const auto& variant) {
    return find_setting(variant.settings, tune.key) != nullptr;
  });
  if (in_variant || (listed && listed->is_list))
    throw UsageError("study.tune.key", concat("the study varies ", tune.key, " as well. Leave out one of them."));
  if (!varies_between_trials(tune.key))
    throw UsageError("study.tune.key", concat(tune.key, " must be the same for all trials of a study."));
}

std::vector<TunedVariant> tuned_variants(const Plan& plan) {
  const TuneConfig& tune = plan.spec.tune;
  const std::vector<double> unknown(tune.values.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<TunedVariant> grids(plan.variants.size());
  for (TunedVariant& grid : grids) grid.values = tune.values, grid.losses = unknown;
  if (plan.folder.empty()) return grids;  // a plan on paper
  const std::filesystem::path folder = plan.folder / "tuning";
  read_losses(make_plan(tuning_spec(plan, grids), folder), grids);
  if (std::any_of(grids.begin(), grids.end(), [](const TunedVariant& grid) { return !grid.best; })) return grids;
  Config scratch;
  const FieldList list = fields(scratch);
  for (TunedVariant& grid : grids)
    if (const auto more = extension(tune, *grid.best, list)) {
      grid.extended = true;
      grid.values.insert(*grid.best == 0 ? grid.values.begin() : grid.values.end(), *more);
    }
  read_losses(make_plan(tuning_spec(plan, grids), folder), grids);
  return grids;
}

Plan tuning_plan(const Plan& plan) {
  Plan tuning = make_plan(tuning_spec(plan, plan.tuned), plan.folder / "tuning");
  tuning.notes.clear();  // what they say of the variants, the study says itself
  return tuning;
}

}  // namespace normlab
