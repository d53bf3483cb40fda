// The plan of a study: variants x folds x seeds, each an ordinary run in a folder of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "normlab/config/config.h"
#include "normlab/study/run/study_config.h"

namespace normlab {

// A key of the configuration that the study varies, such as norm.p, with its values as `normlab config print` has them.
struct Axis {
  std::string key;
  std::vector<std::string> values;
  std::string where = "the study";  // of the setting, as the next
  bool optional = false;
};

struct Variant {
  std::string name;               // "p = 2.5", "p = 2.5, gain_init = matched", or that of a [[variant]]
  std::string label;              // the same with what the study overrides of a scheme: "qknorm, p = 3"
  std::string slug;               // the name as a file name: "p-2.5"
  std::vector<Setting> settings;  // what it sets, one value each
};

inline constexpr const char* fold_key = "data.fold";
inline constexpr const char* seed_key = "train.seed";

const Setting* find_setting(const std::vector<Setting>& settings, const std::string& key);  // null: there is none
Setting study_setting(const std::string& key, const std::string& value);
// False for what all trials share, such as the text, and for what repeats a variant.
bool varies_between_trials(const std::string& key);
// "qknorm, p = 3" where the settings that all variants share override a field of that row.
std::string scheme_label(const StudySpec& spec, const std::string& scheme);

// The place of the variant of that label or name, with or without its spaces; `where` is named when there is none.
size_t find_variant(const std::vector<Variant>& variants, const std::string& label, const std::string& where);

struct Trial {
  size_t number = 0;   // from 1, what `normlab trial DIR N` takes; changes with the plan, the folder does not
  size_t variant = 0;  // index into Plan::variants
  int fold = 0;
  int64_t seed = 0;
  Config config;                 // resolved
  std::filesystem::path folder;  // DIR/trials/<slug>/fold03-seed1337, a run
};

struct Plan {
  std::filesystem::path folder;  // of the study
  StudySpec spec;
  std::vector<Axis> axes;  // without data.fold and train.seed
  std::vector<Variant> variants = {};
  size_t baseline = 0;  // index into variants
  std::vector<int> folds = {};
  std::vector<int64_t> seeds = {};
  std::vector<Trial> trials = {};        // by fold, seed and variant, so that a study stopped half-way has whole folds
  std::vector<TunedVariant> tuned = {};  // of each variant; empty without [study.tune]
  std::vector<std::string> notes = {};   // what the user should know about it

  // Every variant has its value of study.tune.key; before that, trials stand with one from the middle of the grid.
  bool is_tuned() const;
};

std::string plural(size_t count, const std::string& name);  // "1 fold", "2 folds"

// With [study.tune] it depends on what DIR/tuning holds. UsageError for an empty list, nothing to compare, variants
// that compute the same thing, or an unknown key or baseline.
Plan make_plan(const StudySpec& spec, const std::filesystem::path& folder);

// The plan of DIR/study.toml; DataError when DIR is no study, or one that this version cannot read.
Plan load_plan(const std::filesystem::path& folder);

// DataError when the study was begun by another version: its results could not be compared with new ones.
void require_this_version(const Plan& plan);

}  // namespace normlab
