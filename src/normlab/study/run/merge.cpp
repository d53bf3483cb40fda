#include "normlab/study/run/merge.h"

#include <algorithm>
#include <map>
#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/folder_lock.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/study/run/trial.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_spec(const Plan& a, const Plan& b, const std::string& what) {
  throw UsageError("merge", concat(a.folder.string(), " and ", b.folder.string(), " differ: ", what,
                                   ". Only studies of one configuration can be joined."));
}

std::string value_text(const Setting* setting) {
  return !setting ? "not set" : setting->is_list ? concat("[", join(setting->values, ", "), "]") : setting->values[0];
}

void add_values(Setting& into, const std::vector<std::string>& values) {
  for (const std::string& value : values)
    if (std::find(into.values.begin(), into.values.end(), value) == into.values.end()) into.values.push_back(value);
  into.is_list = into.is_list || into.values.size() > 1;
}

// The folds and seeds of a plan as its settings would list them.
Setting repeats(const Plan& plan, const char* key) {
  Setting setting = study_setting(key, "");
  setting.values.clear();
  if (key == std::string(fold_key))
    for (const int fold : plan.folds) setting.values.push_back(concat(fold));
  else
    for (const int64_t seed : plan.seeds) setting.values.push_back(concat(seed));
  setting.is_list = setting.values.size() > 1;
  return setting;
}

// Lists of one key are joined; everything else must be the same in both.
void join_settings(std::vector<Setting>& into, const std::vector<Setting>& from, const Plan& a, const Plan& b) {
  const auto is_repeat = [](const std::string& key) { return key == fold_key || key == seed_key; };
  for (const Setting& each : into)
    if (!is_repeat(each.key) && !find_setting(from, each.key))
      refuse_spec(a, b, concat(each.key, " is ", value_text(&each), " in one and not set in the other"));
  for (const Setting& other : from) {
    if (is_repeat(other.key)) continue;
    const auto own = std::find_if(into.begin(), into.end(), [&](const Setting& s) { return s.key == other.key; });
    if (own != into.end() && own->is_list && other.is_list)
      add_values(*own, other.values);
    else if (own == into.end() || own->values != other.values || own->is_list != other.is_list)
      refuse_spec(a, b,
                  concat(other.key, " is ", value_text(own == into.end() ? nullptr : &*own), " in one and ",
                         value_text(&other), " in the other"));
  }
}

void join_variants(std::vector<NamedSettings>& into, const Plan& a, const Plan& b) {
  const auto same = [](const std::vector<Setting>& x, const std::vector<Setting>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Setting& s, const Setting& t) { return s.key == t.key && s.values == t.values; });
  };
  if (into.empty() != b.spec.variants.empty()) refuse_spec(a, b, "only one has [[variant]] tables");
  for (const NamedSettings& other : b.spec.variants) {
    const auto own =
        std::find_if(into.begin(), into.end(), [&](const NamedSettings& v) { return v.label == other.label; });
    if (own == into.end())
      into.push_back(other);
    else if (!same(own->settings, other.settings))
      refuse_spec(a, b, concat("the variant '", other.label, "' sets other values"));
  }
}

// A trial as one of the folders has it.
struct Candidate {
  Trial trial;
  TrialRecord record;
  int64_t step = 0;
};

// Why one of two candidates is kept; nothing when the other was hardly begun.
std::string choose(Candidate& kept, const Candidate& other) {
  const bool better = kept.record.ended() ? false : other.record.ended() || other.step > kept.step;
  const Candidate &winner = better ? other : kept, &loser = better ? kept : other;
  const auto state = [](const Candidate& c) {
    return c.record.ended() && c.record.val_loss ? concat("validation loss ", fixed(*c.record.val_loss, 4))
                                                 : concat("step ", c.step);
  };
  const std::string note = concat("kept ", winner.trial.folder.string(), " (", state(winner), "), not ",
                                  loser.trial.folder.string(), " (", state(loser), ")");
  if (better) kept = other;
  return note;
}

class Merger {
 public:
  Merger(const std::vector<Plan>& plans, Plan target) : plans_(plans), target_(std::move(target)) {
    for (const Trial& trial : target_.trials) wanted_[place_of(trial, target_)] = &trial;
  }

  MergedStudy copy() {
    for (const Plan& plan : plans_)
      for (const Trial& trial : plan.trials) consider(plan, trial);
    MergedStudy merged{.trials = target_.trials.size(), .notes = notes_};
    for (const auto& [place, candidate] : chosen_) {
      copy_trial(candidate.trial, target_.folder / place);
      merged.ended += candidate.record.ended();
    }
    return merged;
  }

 private:
  static std::string place_of(const Trial& trial, const Plan& plan) {
    return trial.folder.lexically_relative(plan.folder).string();
  }

  void consider(const Plan& plan, const Trial& trial) {
    const TrialRecord record = read_trial(trial);
    if (record.status == TrialStatus::missing) return;
    if (record.status == TrialStatus::damaged)
      throw DataError(trial.folder.string(), concat(record.message, ". Delete the folder to leave the trial out."));
    const std::string place = place_of(trial, plan);
    const auto found = wanted_.find(place);
    if (found == wanted_.end())
      throw DataError(trial.folder.string(), "the joined study has no such variant. Give both the same labels.");
    Trial expected = *found->second;
    expected.folder = trial.folder;
    if (const auto differing = config_differences(expected); !differing.empty())
      throw DataError(trial.folder.string(),
                      concat("this trial was run with another configuration: ", join(differing, "; "), "."));
    if (record.ended()) check_text(trial, record.data_sha256);
    Candidate candidate{.trial = trial, .record = record, .step = glance(trial).step};
    if (const auto [slot, is_new] = chosen_.emplace(place, candidate); !is_new)
      notes_.push_back(choose(slot->second, candidate));
  }

  void check_text(const Trial& trial, const std::string& sha256) {
    if (!first_ended_) first_ended_ = {trial.folder.string(), sha256};
    if (sha256 != first_ended_->second)
      throw DataError(trial.folder.string(),
                      concat("this trial was run on another text than ", first_ended_->first,
                             ": the SHA-256 of the data differ. Their losses cannot be compared."));
  }

  static void copy_trial(const Trial& trial, const fs::path& to) {
    std::optional<FolderLock> unused_by_others;
    if (!read_trial(trial).ended()) unused_by_others.emplace(trial.folder);
    fs::create_directories(to.parent_path());
    fs::copy(trial.folder, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove(to / "run.lock");
    const std::string log = trial.folder.string() + ".log";
    if (fs::exists(log)) fs::copy(log, to.string() + ".log");
  }

  const std::vector<Plan>& plans_;
  const Plan target_;
  std::map<std::string, const Trial*> wanted_;
  std::map<std::string, Candidate> chosen_;
  std::vector<std::string> notes_;
  std::optional<std::pair<std::string, std::string>> first_ended_;  // folder and hash of its text
};

}  // namespace

StudySpec merged_spec(const std::vector<Plan>& plans) {
  const Plan& first = plans.front();
  StudySpec spec = first.spec;
  Config scratch;
  const FieldList list = fields(scratch);
  Setting folds = repeats(first, fold_key), seeds = repeats(first, seed_key);
  for (const Plan& other : plans) {
    if (to_toml(other.spec.tune, list) != to_toml(spec.tune, list)) refuse_spec(first, other, "[study.tune]");
    join_settings(spec.settings, other.spec.settings, first, other);
    join_settings(spec.ladder, other.spec.ladder, first, other);
    join_variants(spec.variants, first, other);
    add_values(folds, repeats(other, fold_key).values);
    add_values(seeds, repeats(other, seed_key).values);
  }
  std::vector<Setting> settings;
  for (const Setting& each : spec.settings)
    if (each.key != fold_key && each.key != seed_key) settings.push_back(each);
  settings.push_back(folds);
  settings.push_back(seeds);
  spec.settings = read_study(optional_settings(settings)).settings;  // in the order of the fields
  return spec;
}

MergedStudy merge_studies(const std::vector<fs::path>& folders, const fs::path& out) {
  if (fs::exists(fs::symlink_status(out)))
    throw UsageError("--out", concat(out.string(), " exists. Choose a new folder for the joined study."));
  std::vector<Plan> plans;
  for (const fs::path& folder : folders) {
    plans.push_back(load_plan(folder));
    require_this_version(plans.back());
  }
  const StudySpec spec = merged_spec(plans);
  if (!out.parent_path().empty()) fs::create_directories(out.parent_path());
  StagedFolder staged(out);
  write_file_atomically(staged.path() / "study.toml", to_toml(spec));
  for (const Plan& plan : plans)  // trials depend on what tuning found, so it is there before the plan is made
    if (spec.tune.wanted() && plan.is_tuned() && !fs::exists(staged.path() / "tuning"))
      fs::copy(plan.folder / "tuning", staged.path() / "tuning",
               fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  MergedStudy merged = Merger(plans, load_plan(staged.path())).copy();
  staged.commit();
  return merged;
}

}  // namespace normlab
