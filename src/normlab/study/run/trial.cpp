#include "normlab/study/run/trial.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/folder_lock.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* status_names[] = {"missing", "started", "finished", "diverged", "crashed", "damaged"};

// False for what neither results nor records of a trial depend on, and for what a run fills in from its text.
bool matters_to_a_trial(const Field& field) {
  const bool harmless = field.effect == Effect::execution || field.effect == Effect::storage;
  return !(harmless && field.on_resume) && !field.from_data;
}

fs::path record_file(const Trial& trial) { return trial.folder / "trial.json"; }

TrialRecord damaged(const std::string& why) { return {.status = TrialStatus::damaged, .message = why}; }

TrialRecord read_record(const fs::path& file) {
  try {
    const Json in = parse_json<Json>(read_file(file));
    const auto count = [&](const char* key) {
      const Json& value = in.at(key);
      constexpr uint64_t largest = std::numeric_limits<int64_t>::max();
      if (!value.is_number_unsigned() || value.get<uint64_t>() > largest)
        throw DataError(file.string(), concat(key, " is not a whole number of 0 or more"));
      return value.get<int64_t>();
    };
    const auto loss = [&](const char* key) {
      return in.contains(key) ? std::optional(in.at(key).get<double>()) : std::nullopt;
    };
    const auto named = std::find(std::begin(status_names), std::end(status_names), in.at("outcome").get<std::string>());
    if (named == std::end(status_names)) return damaged("trial.json has an unknown outcome");
    return {.status = static_cast<TrialStatus>(named - std::begin(status_names)),
            .step = count("step"),
            .val_loss = loss("val_loss"),
            .best_loss = loss("best_loss"),
            .parameters = count("parameters"),
            .train_seconds = in.at("train_seconds"),
            .train_cpu_seconds = in.at("train_cpu_seconds"),
            .data_sha256 = in.at("data_sha256"),
            .message = in.value("message", "")};
  } catch (const Json::exception&) {
    return damaged("trial.json is not a valid trial record");
  } catch (const DataError& error) {
    return damaged(error.what());
  }
}

// What a process that was killed before it wrote anything leaves is as good as nothing.
bool holds_nothing(const fs::path& folder) {
  if (!fs::exists(folder)) return true;
  if (!fs::is_directory(folder)) return false;
  return std::all_of(fs::directory_iterator(folder), fs::directory_iterator(), [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return name == "run.lock" || name.starts_with(".staging-") ||
           (name == "checkpoints" && entry.is_directory() && fs::is_empty(entry));
  });
}

}  // namespace

const char* name_of(TrialStatus status) { return status_names[static_cast<size_t>(status)]; }

TrialRecord read_trial(const Trial& trial) {
  const bool has_config = fs::is_regular_file(trial.folder / "config.toml");
  if (!fs::exists(record_file(trial))) {
    if (has_config) return {.status = TrialStatus::started};
    return holds_nothing(trial.folder) ? TrialRecord{} : damaged("config.toml is missing");
  }
  TrialRecord record = read_record(record_file(trial));
  if (!record.ended()) return record;
  if (!has_config) return damaged("config.toml is missing");
  if (!fs::is_regular_file(trial.folder / "metrics.jsonl") || glance(trial).step < record.step)
    return damaged("metrics.jsonl is not complete");
  return record;
}

Glance glance(const Trial& trial) {
  Glance seen;
  std::error_code missing;
  if (!fs::is_regular_file(trial.folder / "metrics.jsonl", missing)) return seen;
  std::ifstream file(trial.folder / "metrics.jsonl", std::ios::binary | std::ios::ate);
  if (!file) return seen;
  const std::streamoff size = file.tellg();
  // Some forty rows; more when the last ones are the long rows of a probe.
  for (std::streamoff length = 8192; !seen.loss && !seen.val_loss; length *= 8) {
    std::string tail(static_cast<size_t>(std::min(size, length)), '\0');
    file.seekg(size - static_cast<std::streamoff>(tail.size()));
    file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
    for (const std::string& line : split(tail, '\n')) {
      const Json row = parse_json<Json>(line);  // the first and the last line may be torn
      if (!row.is_object() || !row.contains("step") || !row["step"].is_number_integer()) continue;
      seen.step = row["step"];
      if (row.contains("loss") && row["loss"].is_number()) seen.loss = row["loss"];
      if (row.contains("val_loss") && row["val_loss"].is_number()) seen.val_loss = row["val_loss"];
    }
    if (length >= size) break;
  }
  return seen;
}

std::vector<std::string> config_differences(const Trial& trial) {
  const fs::path file = trial.folder / "config.toml";
  std::vector<std::string> differing;
  if (!fs::is_regular_file(file)) return differing;
  for (const ConfigDifference& each : differences(stored_config(file), trial.config, matters_to_a_trial))
    differing.push_back(concat(each.key, " is ", each.a, " there and ", each.b, " in the study"));
  return differing;
}

void require_same_trial(const Trial& trial) {
  const std::vector<std::string> differing = config_differences(trial);
  if (!differing.empty())
    throw UsageError(trial.folder.string(),
                     concat("this trial was started with another configuration: ", join(differing, "; "),
                            ". Choose another --out, or delete the folder to run it again."));
}

void write_record(const Trial& trial, const TrialRecord& record) {
  Json out = {{"outcome", name_of(record.status)}, {"step", record.step}};
  if (record.val_loss) out["val_loss"] = *record.val_loss;
  if (record.best_loss) out["best_loss"] = *record.best_loss;
  out["parameters"] = record.parameters;
  out["train_seconds"] = record.train_seconds;
  out["train_cpu_seconds"] = record.train_cpu_seconds;
  out["data_sha256"] = record.data_sha256;
  if (!record.message.empty()) out["message"] = record.message;
  write_file_atomically(record_file(trial), out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void forget_crash(const Trial& trial) {
  if (read_trial(trial).status == TrialStatus::crashed) fs::remove(record_file(trial));
}

void record_crash(const Trial& trial, const std::string& message) {
  try {
    fs::create_directories(trial.folder);
    const FolderLock lock(trial.folder);
    if (read_trial(trial).ended()) return;  // another process was faster
    write_record(trial, {.status = TrialStatus::crashed, .message = message});
  } catch (const std::exception&) {
    // Another process is running the trial, or the disk is full: what was wrong is reported all the same.
  }
}

}  // namespace normlab
