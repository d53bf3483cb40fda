#include "normlab/serve/run_summary.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/record/metrics_rows.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_names[] = {"waiting", "running", "stopped", "finished", "diverged", "crashed", "damaged"};

double seconds_since(int64_t time) { return static_cast<double>(std::time(nullptr) - time); }

// The end of a run as its rows tell it: the last step, the score of the test text, or an early stop.
struct End {
  int evaluations_since_best = 0;
  bool diverged = false, tested = false;
};

void read_rows(const fs::path& metrics, RunSummary& summary, End& end) {
  for_each_row(metrics, [&](const MetricsRow& row) {
    summary.step = std::max(summary.step, row.step);
    end.diverged = row.has("diverged");
    end.tested |= row.has("test_bleu");
    const double loss = row.number("loss", std::nan("")), val_loss = row.number("val_loss", std::nan(""));
    if (std::isfinite(loss)) summary.loss = loss;
    if (std::isfinite(val_loss)) {
      summary.val_loss = val_loss;
      ++end.evaluations_since_best;
      if (!summary.best_loss || val_loss < *summary.best_loss)
        summary.best_loss = val_loss, summary.best_step = row.step, end.evaluations_since_best = 0;
    }
    summary.train_seconds = row.number("train_seconds", summary.train_seconds);
    summary.tokens_per_second = row.number("tokens_per_second", summary.tokens_per_second);
  });
}

nlohmann::json outcome_of(const fs::path& run) {
  std::error_code missing;
  return fs::is_regular_file(run / "trial.json", missing) ? parse_json(read_file(run / "trial.json")) : nullptr;
}

// trial.json says how a trial of a study ended. True when it says all that its rows would.
bool read_outcome(const nlohmann::json& record, RunSummary& summary) {
  if (!record.is_object() || !record.contains("outcome") || !record["outcome"].is_string()) return false;
  const std::string outcome = record["outcome"];
  for (const RunState state : {RunState::finished, RunState::diverged, RunState::crashed})
    if (outcome == name_of(state)) summary.state = state;
  if (record.contains("message") && record["message"].is_string()) summary.problem = record["message"];
  const auto is_number = [&](const char* key) { return record.contains(key) && record[key].is_number(); };
  if (summary.state != RunState::finished || !is_number("step") || !is_number("val_loss") || !is_number("best_loss") ||
      !is_number("train_seconds"))
    return false;
  summary.step = record["step"], summary.train_seconds = record["train_seconds"];
  summary.val_loss = record["val_loss"].get<double>(), summary.best_loss = record["best_loss"].get<double>();
  return true;
}

}  // namespace

const char* name_of(RunState state) { return state_names[static_cast<size_t>(state)]; }

FileStamp stamp_of(const fs::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return {};
  return {found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ino};
}

std::string text_of(const FileStamp& stamp) {
  return concat(stamp.size, " ", stamp.seconds, " ", stamp.nanoseconds, " ", stamp.inode, "\n");
}

double RunSummary::share() const {
  if (ended()) return 1.0;
  return max_steps > 0 ? std::clamp(static_cast<double>(step) / static_cast<double>(max_steps), 0.0, 1.0) : 0.0;
}

std::optional<double> RunSummary::seconds_left() const {
  if (state != RunState::running || step == 0 || train_seconds <= 0 || max_steps <= step) return std::nullopt;
  return train_seconds / static_cast<double>(step) * static_cast<double>(max_steps - step);
}

bool files_are_inside(const ServedFolder& folder, const fs::path& run) {
  std::error_code missing;
  if (!fs::exists(fs::symlink_status(run, missing))) return true;
  if (!folder.holds(run)) return false;
  for (const char* name : {"config.toml", "metrics.jsonl", "trial.json", "manifest.json", "checkpoints"}) {
    if (fs::exists(fs::symlink_status(run / name, missing)) && !folder.holds(run / name)) return false;
  }
  return true;
}

RunSummary RunSummaries::read(const fs::path& run, const Config* known) const {
  RunSummary summary;
  try {
    if (!files_are_inside(folder_, run)) throw DataError(folder_.relative(run), "a link leads out of the folder.");
    const bool begun = fs::is_regular_file(run / "config.toml");
    Config stored;
    if (begun && !known) stored = stored_config(run / "config.toml"), known = &stored;
    if (known) summary.scheme = scheme_label(known->norm), summary.max_steps = known->train.max_steps;
    if (!begun) return summary;
    const nlohmann::json outcome = outcome_of(run);
    if (known != &stored && read_outcome(outcome, summary)) return summary;  // of a list: quicker than its rows
    summary.state = RunState::stopped;
    End end;
    if (fs::exists(run / "metrics.jsonl")) read_rows(run / "metrics.jsonl", summary, end);
    const int patience = known->train.early_stop;
    if (summary.step >= summary.max_steps || end.tested || (patience > 0 && end.evaluations_since_best >= patience))
      summary.state = RunState::finished;
    if (end.diverged) summary.state = RunState::diverged;
    read_outcome(outcome, summary);
  } catch (const Error& error) {
    summary.state = RunState::damaged;
    summary.problem = error.what();
  }
  return summary;
}

RunSummary RunSummaries::of(const fs::path& run, const HeldLocks& locks, const Config* known) {
  const FileStamp config = stamp_of(run / "config.toml"), metrics = stamp_of(run / "metrics.jsonl"),
                  record = stamp_of(run / "trial.json");
  Kept& kept = kept_[run.string()];
  const bool same = kept.config == config && kept.metrics == metrics && kept.record == record;
  if (!same || config == FileStamp{} || (kept.brief && !known)) {
    kept = {config, metrics, record, read(run, known), known != nullptr};
    kept.summary.changed = std::max(metrics.seconds, config.seconds);
  }
  RunSummary summary = kept.summary;
  const bool open = summary.state == RunState::stopped || summary.state == RunState::waiting ||
                    summary.state == RunState::crashed || summary.state == RunState::finished;
  if (open && locks.in_use(run, "run.lock", seconds_since(summary.changed))) summary.state = RunState::running;
  return summary;
}

std::string RunSummaries::fingerprint(const fs::path& run, const HeldLocks& locks) {
  const FileStamp metrics = stamp_of(run / "metrics.jsonl");
  return concat(text_of(metrics), text_of(stamp_of(run / "trial.json")), text_of(stamp_of(run / "config.toml")),
                locks.in_use(run, "run.lock", seconds_since(metrics.seconds)));
}

}  // namespace normlab
