// Checks of what is on disk: each reader is asked, and each message is kept.
#include "normlab/study/analyse/check.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"
#include "normlab/record/checksums.h"
#include "normlab/record/metrics.h"
#include "normlab/record/run_dir.h"
#include "normlab/record/safetensors.h"
#include "normlab/study/run/trial.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::optional<int64_t> whole_number_in(const nlohmann::json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) return std::nullopt;
  return object[key].get<int64_t>();
}

class Checker {
 public:
  void run(const fs::path& folder);
  void checkpoint(const fs::path& folder);
  void study(const fs::path& folder);
  void file(const fs::path& path);
  Findings found;

 private:
  void fault(const fs::path& place, const std::string& what) {
    found.faults.push_back(concat("[", place.string(), "] ", what));
  }
  // Keeps what a reader complains of.
  void attempt(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      found.faults.emplace_back(error.what());
    } catch (const fs::filesystem_error& error) {
      found.faults.emplace_back(error.what());
    }
  }
  void tensors(const fs::path& path);
  void state(const fs::path& path);
  // What state.json of the newest checkpoint says; a step below 0: there is none.
  struct Newest {
    int64_t step = -1, last_eval = -1, metrics_rows = -1;
  };
  static Newest newest_of(const RunDir& run, const std::vector<int64_t>& steps);
  void rows(const RunDir& run, const std::optional<Config>& config, const Newest& newest);
  void links(const RunDir& run, const std::vector<int64_t>& steps);
};

// The header is checked when the file is opened; here the values.
void Checker::tensors(const fs::path& path) {
  const SafetensorsFile file(path);
  for (const TensorView& tensor : file.tensors()) {
    const size_t bad = count_nonfinite(tensor);
    if (bad > 0) fault(path, concat("tensor '", tensor.name, "' has ", bad, " values that are not finite."));
  }
}

void Checker::state(const fs::path& path) {
  const nlohmann::json content = parse_json(read_file(path));
  if (!content.is_object()) return fault(path, "is not a JSON object.");
  if (!is_intact(content)) fault(path, "has changed since it was written: its SHA-256 is another.");
  const auto step = whole_number_in(content, "step"), last_eval = whole_number_in(content, "last_eval"),
             named = checkpoint_step(path.parent_path());
  if (!step || *step < 0) return fault(path, "has no step of 0 or more.");
  if (named && *named != *step) fault(path, concat("is of step ", *step, ", but its folder of step ", *named, "."));
  if (last_eval && (*last_eval < -1 || *last_eval > *step))
    fault(path, concat("was last evaluated at step ", *last_eval, ", which cannot be at step ", *step, "."));
}

void Checker::checkpoint(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "state.json", "tokenizer.json", "config.toml"})
    if (!fs::is_regular_file(folder / name)) fault(folder, concat("lacks ", name, "."));
  for (const char* name : {"model.safetensors", "optimizer.safetensors"})
    if (fs::exists(folder / name)) attempt([&] { tensors(folder / name); });
  if (fs::is_regular_file(folder / "state.json")) attempt([&] { state(folder / "state.json"); });
  for (const char* name : {"tokenizer.json", "config.toml"})
    if (fs::is_regular_file(folder / name)) attempt([&] { file(folder / name); });
  attempt([&] {
    for (const std::string& each : checksum_faults(folder)) fault(folder, each + ".");
  });
}

Checker::Newest Checker::newest_of(const RunDir& run, const std::vector<int64_t>& steps) {
  if (steps.empty()) return {};
  Newest newest{.step = steps.back()};
  const fs::path path = run.checkpoint(newest.step) / "state.json";
  if (!fs::is_regular_file(path)) return newest;
  const nlohmann::json state = parse_json(read_file(path));
  if (const auto value = whole_number_in(state, "last_eval")) newest.last_eval = *value;
  if (const auto value = whole_number_in(state, "metrics_rows")) newest.metrics_rows = *value;
  return newest;
}

// Rows are in order and without gaps, and as many as the newest checkpoint counted.
void Checker::rows(const RunDir& run, const std::optional<Config>& config, const Newest& newest) {
  if (!fs::exists(run.metrics())) {
    if (newest.step > 0) fault(run.metrics(), "is missing, though there are checkpoints.");
    return;
  }
  const std::vector<Json> all = MetricsLog::read(run.metrics());
  found.seen.push_back(concat(all.size(), " rows of metrics"));
  if (!all.empty() && newest.step < 0)
    fault(run.path() / "checkpoints", "holds no checkpoint, though metrics.jsonl has rows: the run cannot be resumed.");
  int64_t before = 0, logged = 0, counted = 0;
  const int64_t every = config ? config->train.log_every : 1;
  const std::string unsure =
      newest.metrics_rows >= 0 ? "" : concat(" (train.log_every is ", every, "; if it was changed, this may be right)");
  std::vector<std::string> gaps;  // up to the newest checkpoint, for all that train.log_every may have been changed
  for (const Json& row : all) {
    const int64_t step = row["step"];
    if (step < before) fault(run.metrics(), concat("has a row of step ", step, " after one of step ", before, "."));
    before = step;
    counted += step < newest.step || (step == newest.step && (!row.contains("val_loss") || newest.last_eval == step));
    if (!row.contains("loss") || row.contains("diverged")) continue;
    if (step == logged) fault(run.metrics(), concat("has two training rows of step ", step, "."));
    const int64_t due = step > newest.step ? std::max(logged, newest.step / every * every) + every : logged + every;
    const std::string gap = concat("lacks rows between the steps ", logged, " and ", step, unsure, ".");
    if (step > due && step > newest.step) fault(run.metrics(), gap);
    if (step > due && step <= newest.step) gaps.push_back(gap);
    logged = step;
  }
  if (counted >= newest.metrics_rows && newest.metrics_rows >= 0) return;
  for (const std::string& gap : gaps) fault(run.metrics(), gap);
  if (newest.metrics_rows >= 0)
    fault(run.metrics(), concat("has ", counted, " of the ", newest.metrics_rows,
                                " rows that it had when the checkpoint of step ", newest.step, " was written."));
  else if (logged < newest.step / every * every)
    fault(run.metrics(), concat("ends at step ", logged, ", before the newest checkpoint, of step ", newest.step, "."));
}

void Checker::links(const RunDir& run, const std::vector<int64_t>& steps) {
  const fs::path folder = run.path() / "checkpoints";
  for (const char* name : {"latest", "best"}) {
    if (!fs::is_symlink(fs::symlink_status(folder / name))) {
      if (!steps.empty() && std::string_view(name) == "latest") fault(folder, "has no link 'latest'.");
      continue;
    }
    const fs::path target = fs::read_symlink(folder / name);
    const auto step = checkpoint_step(target);
    if (!step || target.has_parent_path() || !fs::is_directory(folder / target))
      fault(folder / name, concat("points to ", target.string(), ", which is not a checkpoint of this run."));
    else if (std::string_view(name) == "latest" && *step != steps.back())
      fault(folder / name, concat("points to step ", *step, "; the newest checkpoint is of step ", steps.back(), "."));
  }
}

void Checker::run(const fs::path& folder) {
  const RunDir run = RunDir::open(folder);
  std::optional<Config> config;
  attempt([&] { config = stored_config(run.config()); });
  if (fs::exists(run.manifest()))
    attempt([&] {
      const Json content = parse_json<Json>(read_file(run.manifest()));
      if (!content.is_object() || !content.contains("sessions") || !content["sessions"].is_array())
        fault(run.manifest(), "is not the manifest of a run.");
    });
  std::vector<int64_t> steps;
  size_t aside = 0;
  bool listed = false;
  attempt([&] {
    for (const Checkpoint& each : run.checkpoints()) steps.push_back(each.step);
    listed = true;
    if (!fs::exists(folder / "checkpoints")) return;
    for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) {
      const std::string name = entry.path().filename().string();
      aside += name.starts_with("damaged-step-") || name.starts_with("unlogged-step-");
    }
  });
  found.seen.push_back(concat(steps.size(), steps.size() == 1 ? " checkpoint" : " checkpoints"));
  if (aside > 0) found.seen.push_back(concat(aside, " set aside"));
  for (const int64_t step : steps) {
    checkpoint(run.checkpoint(step));
    if (config)
      attempt([&] {
        const fs::path own = run.checkpoint(step) / "config.toml";
        if (fs::is_regular_file(own)) require_same_run(stored_config(own), *config);
      });
  }
  if (!listed) return;
  attempt([&] { rows(run, config, newest_of(run, steps)); });
  attempt([&] { links(run, steps); });
}

void Checker::study(const fs::path& folder) {
  const Plan plan = load_plan(folder);
  size_t ended = 0;
  for (const Trial& trial : plan.trials) {
    attempt([&] {
      const TrialRecord record = read_trial(trial);
      ended += record.ended();
      if (record.status == TrialStatus::damaged) fault(trial.folder, record.message + ".");
      if (record.status == TrialStatus::missing) return;
      require_same_trial(trial);
      const size_t kinds = found.seen.size();
      if (fs::is_regular_file(trial.folder / "config.toml")) run(trial.folder);
      found.seen.resize(kinds);  // those of single trials are not worth a line
    });
  }
  found.seen.push_back(concat(plan.trials.size(), " trials, ", ended, " of them ended"));
}

void Checker::file(const fs::path& path) {
  const std::string kind = path.extension().string();
  if (kind == ".safetensors") {
    tensors(path);
  } else if (kind == ".toml") {
    if (path.filename() == "study.toml")
      load_plan(path.parent_path());
    else
      stored_config(path);
  } else if (kind == ".jsonl") {
    MetricsLog::read(path);
  } else if (kind == ".json") {
    if (parse_json(read_file(path)).is_discarded()) fault(path, "is not JSON.");
  } else {
    throw DataError(path.string(),
                    "cannot be checked; expected a run, a checkpoint, a study, or a file that ends in "
                    ".safetensors, .toml, .json or .jsonl.");
  }
}

}  // namespace

Findings check_path(const fs::path& path) {
  Checker checker;
  if (!fs::exists(path)) throw DataError(path.string(), "no such file or folder.");
  if (!fs::is_directory(path)) {
    if (!fs::is_regular_file(path)) throw DataError(path.string(), "is not a regular file.");
    try {
      checker.file(path);
    } catch (const UsageError& error) {  // of a configuration in the file, not of our command
      checker.found.faults.emplace_back(error.what());
    }
  } else if (fs::is_regular_file(path / "study.toml")) {
    checker.study(path);
  } else if (fs::exists(path / "model.safetensors") || checkpoint_step(path)) {
    checker.checkpoint(path);
  } else {
    checker.run(path);
  }
  return checker.found;
}

}  // namespace normlab
