#include "normlab/study/run/plan.h"

#include <algorithm>
#include <map>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/study/run/tuning.h"
#include "normlab/study/run/variants.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// The value of study.tune.key that the variant's trials have: its best, or until that is known one from the grid.
std::string tuned_value(const TuneConfig& tune, const TunedVariant& variant) {
  return variant.best ? variant.values[*variant.best] : tune.values[tune.values.size() / 2];
}

struct FoldSeed {
  int fold;
  int64_t seed;
};

Config config_of(const StudySpec& spec, const Variant& variant, int fold, int64_t seed,
                 std::vector<std::string>& notes) {
  std::vector<Setting> settings = {study_setting("train.threads", "1")};  // trials run in parallel, one thread each
  for (const Setting& each : spec.settings)
    if (!each.is_list) settings.push_back(each);
  std::vector<Setting> rung;
  for (const Setting& each : variant.settings) (is_ladder_key(each.key) ? rung : settings).push_back(each);
  settings.push_back(study_setting(fold_key, concat(fold)));
  settings.back().optional = !find_setting(spec.settings, fold_key);
  settings.push_back(study_setting(seed_key, concat(seed)));
  try {
    if (!spec.ladder.empty())
      for (const Setting& each : rung_settings(spec.ladder, rung, settings)) settings.push_back(each);
    LoadedConfig loaded = resolve_config(settings);
    for (const std::string& note : loaded.notes) notes.push_back(concat(variant.label, ": ", note));
    return loaded.config;
  } catch (const UsageError& error) {
    throw UsageError(variant.label, error.what());
  }
}

// Resolved once for each variant, and for the first variant in every fold and seed, which checks these; what is left
// differs in fold and seed alone. A study may have tens of thousands of trials.
Config trial_config(const StudySpec& spec, const Variant& variant, Plan& plan, size_t v, FoldSeed place) {
  std::vector<std::string> known;
  const bool first_block = plan.trials.size() < plan.variants.size();
  if (first_block || v == 0) return config_of(spec, variant, place.fold, place.seed, first_block ? plan.notes : known);
  Config config = plan.trials[v].config;  // the first fold and seed have all variants in order
  config.data.fold = place.fold;
  config.train.seed = place.seed;
  return config;
}

// "; they differ in train.threads, which does not change results."
std::string difference_text(const Config& a, const Config& b) {
  std::vector<std::string> keys;
  for (const ConfigDifference& each : differences(a, b, [](const Field&) { return true; })) keys.push_back(each.key);
  return keys.empty() ? "." : concat(": they differ only in ", join(keys, ", "), ", which changes no result.");
}

std::string padded(int fold) { return concat(fold < 10 ? "0" : "", fold); }

// A study that was stored is read as it is.
bool is_stored(const StudySpec& spec) {
  return std::any_of(spec.settings.begin(), spec.settings.end(), [](const Setting& each) { return each.optional; });
}

void check_distinct(const Plan& plan) {
  std::map<std::string, size_t> results, slugs;  // the first variant that has each
  for (size_t i = 0; i < plan.variants.size(); ++i) {
    const auto refuse_second = [&](std::map<std::string, size_t>& seen, const std::string& name, const auto& what) {
      const auto [first, is_new] = seen.emplace(name, i);
      if (is_new) return;
      throw UsageError("study", concat("the variants '", plan.variants[first->second].label, "' and '",
                                       plan.variants[i].label, "' ", what(first->second)));
    };
    const Config& config = plan.trials[i].config;
    refuse_second(results, is_stored(plan.spec) ? to_toml(config) : computed_by(config), [&](size_t first) {
      return concat("compute the same thing", difference_text(plan.trials[first].config, config));
    });
    refuse_second(slugs, plan.variants[i].slug,
                  [](size_t) { return std::string("would share a folder. Choose other labels."); });
  }
}

// Then there is nothing to hold out, and folds are all the same.
bool has_development_files(const StudySpec& spec) {
  const Setting* dev = find_setting(spec.settings, "translation.dev");
  return find_setting(spec.settings, "translation.source") && !(dev && dev->values.front().empty());
}

}  // namespace

std::string plural(size_t count, const std::string& name) { return concat(count, " ", name, count == 1 ? "" : "s"); }

const Setting* find_setting(const std::vector<Setting>& settings, const std::string& key) {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

Setting study_setting(const std::string& key, const std::string& value) {
  return {.key = key, .values = {value}, .where = "the study", .is_list = false};
}

Plan make_plan(const StudySpec& spec, const fs::path& folder) {
  Plan plan{.folder = folder, .spec = spec, .axes = axes_of(spec)};
  plan.variants = variants_of(spec, plan.axes);
  if (!spec.study.baseline.empty()) plan.baseline = find_variant(plan.variants, spec.study.baseline, "study.baseline");

  Config defaults;
  const Setting* n_folds = find_setting(spec.settings, "data.folds");
  if (const Setting* configured = find_setting(spec.settings, fold_key))
    for (const std::string& fold : configured->values) plan.folds.push_back(static_cast<int>(*parse_integer(fold)));
  else if (has_development_files(spec))
    plan.folds = {defaults.data.fold};
  else
    for (int fold = 0; fold < (n_folds ? *parse_integer(n_folds->values.front()) : defaults.data.folds); ++fold)
      plan.folds.push_back(fold);
  if (const Setting* configured = find_setting(spec.settings, seed_key))
    for (const std::string& seed : configured->values) plan.seeds.push_back(*parse_integer(seed));
  else
    plan.seeds.push_back(defaults.train.seed);
  if (plan.folds.size() * plan.seeds.size() < 2)
    plan.notes.push_back(
        "one fold and one seed: differences cannot be distinguished from chance. Try data.fold=[0,1,2].");

  require_count(plan.folds.size(), "folds");
  require_count(plan.folds.size() * plan.seeds.size(), "pairs of fold and seed");
  require_count(plan.folds.size() * plan.seeds.size() * plan.variants.size(), "trials");

  std::vector<Variant> variants = plan.variants;
  if (spec.tune.wanted()) {
    check_tune(plan);
    if (const Setting* given = find_setting(spec.settings, spec.tune.key))
      plan.notes.push_back(concat(spec.tune.key, " = ", given->values.front(), " gives way to [study.tune]"));
    plan.tuned = tuned_variants(plan);
    for (size_t v = 0; v < variants.size(); ++v)
      variants[v].settings.push_back(study_setting(spec.tune.key, tuned_value(spec.tune, plan.tuned[v])));
  }

  for (const int fold : plan.folds)
    for (const int64_t seed : plan.seeds)
      for (size_t v = 0; v < plan.variants.size(); ++v) {
        const Variant& variant = variants[v];
        plan.trials.push_back(
            {.number = plan.trials.size() + 1,
             .variant = v,
             .fold = fold,
             .seed = seed,
             .config = trial_config(spec, variant, plan, v, {fold, seed}),
             .folder = folder / "trials" / variant.slug / concat("fold", padded(fold), "-seed", seed)});
      }
  check_distinct(plan);
  return plan;
}

bool Plan::is_tuned() const {
  return std::all_of(tuned.begin(), tuned.end(), [](const TunedVariant& each) { return each.best.has_value(); });
}

Plan load_plan(const fs::path& folder) {
  const fs::path file = folder / "study.toml";
  if (!fs::is_regular_file(file))
    throw DataError(folder.string(),
                    "is not a study; expected a folder with study.toml, as written by `normlab compare`.");
  const std::vector<Setting> settings = optional_settings(read_toml(file.string()));
  const Setting* version = find_setting(settings, "normlab");
  try {
    return make_plan(read_study(settings), folder);
  } catch (const UsageError& error) {
    if (version && !version->values.empty() && version->values.front() != NORMLAB_VERSION)
      throw DataError(folder.string(), concat("is a study of normlab ", version->values.front(), ", and this is ",
                                              NORMLAB_VERSION, ", which cannot read it: ", error.what()));
    throw;
  }
}

void require_this_version(const Plan& plan) {
  if (plan.spec.version == NORMLAB_VERSION) return;
  throw DataError(
      plan.folder.string(),
      concat("this study was started with normlab ", plan.spec.version.empty() ? "of no version" : plan.spec.version,
             ", and this is ", NORMLAB_VERSION, ". Resume with that version, or choose another --out."));
}

}  // namespace normlab
