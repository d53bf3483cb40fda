// Runs beside each other: reads configuration, metrics and the state of the latest checkpoint.
#include "normlab/study/analyse/run_comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/record/metrics_rows.h"
#include "normlab/record/run_dir.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

struct Run {
  Trial trial;
  TrialResult result;
  std::string vocabulary = {};  // tokenizer.json of its latest checkpoint; empty: there is none
};

void require_runs(const std::vector<std::string>& folders) {
  if (folders.size() < 2) throw UsageError("compare", "one run has nothing to be compared with. Name two or more.");
  std::set<fs::path> seen;
  for (const std::string& folder : folders) {
    if (!fs::exists(folder)) throw UsageError(folder, "there is no such folder. Name runs of `normlab train`.");
    if (fs::exists(fs::path(folder) / "study.toml"))
      throw UsageError(folder, "is a study, not a run. `normlab report` compares its trials.");
    if (fs::exists(fs::path(folder) / "model.safetensors"))
      throw UsageError(folder, "is a checkpoint, not a run. Name the folder of its run.");
    if (!fs::exists(fs::path(folder) / "config.toml"))
      throw UsageError(folder, "is not a run; expected a folder with config.toml, as written by `normlab train`.");
    if (!seen.insert(fs::weakly_canonical(folder)).second) throw UsageError(folder, "is named twice.");
  }
}

// To the last step, or to the rules of the configuration that end it earlier.
bool has_ended(const nlohmann::json& state, const TrainConfig& train) {
  return state.at("step").get<int64_t>() >= train.max_steps || state.contains("test_bleu") ||
         (train.early_stop > 0 && state.at("evals_since_best").get<int>() >= train.early_stop);
}

bool has_diverged(const fs::path& metrics) {
  bool diverged = false;
  for_each_row(metrics, [&](const MetricsRow& row) { diverged = row.has("diverged"); });
  return diverged;
}

TrialRecord record_of(const fs::path& folder, const Config& config, const fs::path& checkpoint) {
  TrialRecord record{.status = TrialStatus::started};
  const nlohmann::json state = parse_json(read_file(checkpoint / "state.json"));
  try {
    record.step = state.at("step");
    record.train_seconds = state.at("train_seconds");
    record.train_cpu_seconds = state.value("train_cpu_seconds", record.train_seconds);
    record.data_sha256 = state.at("data_sha256");
    if (has_ended(state, config.train)) record.status = TrialStatus::finished;
  } catch (const nlohmann::json::exception&) {
    throw DataError((checkpoint / "state.json").string(),
                    "is not the state of a checkpoint. `normlab check` says more.");
  }
  if (has_diverged(folder / "metrics.jsonl")) record.status = TrialStatus::diverged;
  return record;
}

Run load_run(const std::string& folder) {
  const RunDir dir = RunDir::open(folder);
  Run run;
  run.trial.folder = folder;
  run.trial.config = stored_config(dir.config());
  run.trial.fold = run.result.fold = run.trial.config.data.fold;
  run.trial.seed = run.result.seed = run.trial.config.train.seed;
  run.result.folder = folder;
  read_metrics(folder, run.result);
  const auto latest = dir.latest();
  if (!latest) {
    run.result.record.status = TrialStatus::started;
    return run;
  }
  run.result.record = record_of(folder, run.trial.config, latest->path);
  run.vocabulary = read_file(latest->path / "tokenizer.json");
  if (is_finished(run.result) && run.result.curve.empty())
    throw DataError(dir.metrics().string(), "has no evaluation of a finished run.");
  if (!run.result.curve.empty()) {
    run.result.record.val_loss = run.result.curve.back().loss;
    run.result.record.best_loss = best_loss(run.result);
  }
  return run;
}

std::string without_slash(const std::string& folder) {
  const size_t end = folder.find_last_not_of('/');
  return end == std::string::npos ? folder : folder.substr(0, end + 1);
}

// Runs that share a value, one group after the other: "runs/a, runs/b: 3; runs/c: 5".
std::string groups_text(const std::vector<Run>& runs, const std::vector<std::string>& values) {
  std::vector<std::string> groups;
  std::set<std::string> done;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (!done.insert(values[i]).second) continue;
    std::vector<std::string> names;
    for (size_t j = i; j < runs.size(); ++j)
      if (values[j] == values[i]) names.push_back(runs[j].trial.folder.string());
    groups.push_back(concat(join(names, ", "), ": ", values[i].empty() ? "none" : values[i]));
  }
  return join(groups, "; ");
}

bool differ(const std::vector<std::string>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
}

// The text and vocabulary themselves where checkpoints tell; settings that a study would share between its variants,
// and the fold, from their declarations.
std::vector<std::string> reasons_against(const std::vector<Run>& runs) {
  std::vector<std::string> reasons, sums, vocabularies;
  for (const Run& run : runs) {
    if (!run.result.record.data_sha256.empty()) sums.push_back(run.result.record.data_sha256);
    if (!run.vocabulary.empty()) vocabularies.push_back(run.vocabulary);
  }
  if (differ(sums)) reasons.emplace_back("they were trained on different texts (SHA-256)");
  if (!differ(sums) && differ(vocabularies)) reasons.emplace_back("their tokenisers have different vocabularies");
  std::vector<Config> configs;
  for (const Run& run : runs) configs.push_back(run.trial.config);
  std::vector<FieldList> lists;
  for (Config& config : configs) lists.push_back(fields(config));
  for (size_t f = 0; f < lists.front().fields().size(); ++f) {
    const Field& field = lists.front().fields()[f];
    if (field.in_study != InStudy::shared && field.key != fold_key) continue;
    if (field.key == "data.source" && sums.size() == runs.size()) continue;  // its content says more than its name
    std::vector<std::string> values;
    for (const FieldList& list : lists)
      values.push_back(list.is_read(list.fields()[f]) ? list.fields()[f].get() : "not read");
    if (differ(values)) reasons.push_back(concat(field.key, " differs (", groups_text(runs, values), ")"));
  }
  return reasons;
}

std::string unfinished_text(const Run& run) {
  const TrialRecord& record = run.result.record;
  const std::string name = run.trial.folder.string(), of = concat(" of ", run.trial.config.train.max_steps);
  if (record.status == TrialStatus::diverged)
    return concat(name, " diverged after step ", record.step, of, ": it has no final loss.");
  return concat(name, record.step > 0 || !run.result.curve.empty()
                          ? concat(" is at step ", record.step, of, ": its last loss is not a final one.")
                          : std::string(" has no checkpoint and no loss yet."));
}

}  // namespace

RunComparison load_runs(const std::vector<std::string>& folders) {
  require_runs(folders);
  RunComparison out;
  std::vector<Run> runs;
  for (const std::string& folder : folders) try {
      runs.push_back(load_run(without_slash(folder)));
      add_provenance(out.results.provenance, runs.back().trial.folder / "manifest.json");
    } catch (const Error& error) {  // the others are shown all the same
      out.unreadable.emplace_back(error.what());
    }
  if (runs.empty()) throw DataError("compare", concat("no run can be read: ", join(out.unreadable, "; ")));
  out.incomparable = reasons_against(runs);
  for (Run& run : runs) {
    if (!is_finished(run.result)) out.unfinished.push_back(unfinished_text(run));
    Plan& plan = out.results.plan;
    const std::string label = run.trial.folder.string();
    run.trial.variant = run.result.variant = plan.variants.size();
    run.trial.number = plan.variants.size() + 1;
    plan.variants.push_back({.name = label, .label = label, .slug = label, .settings = {}});
    plan.trials.push_back(run.trial);
    out.results.trials.push_back(run.result);
  }
  return out;
}

}  // namespace normlab
