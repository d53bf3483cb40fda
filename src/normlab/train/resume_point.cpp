#include "normlab/train/resume_point.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/record/checksums.h"
#include "normlab/record/metrics.h"
#include "normlab/record/safetensors.h"
#include "normlab/train/checkpoint.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<nlohmann::ordered_json>;

// What is wrong with a checkpoint, in words; nothing when it is whole.
std::string damage_in(const fs::path& folder) {
  for (const char* name :
       {"state.json", "model.safetensors", "optimizer.safetensors", "tokenizer.json", "config.toml"}) {
    if (::access((folder / name).c_str(), R_OK) == 0) continue;
    if (errno == EACCES)  // it may well be whole
      throw Error((folder / name).string(), "cannot be read: permission denied. Resume once it can be.");
    return concat(name, " is missing");
  }
  try {
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) SafetensorsFile(folder / name);
    require_checksums(folder);
    read_state(folder);
    load_checkpoint_config(folder);
    return "";
  } catch (const Error& error) {
    if (error.code() == Exit::failed) throw;
    return error.what();
  }
}

std::string lost_rows_of(const fs::path& folder, const Rows& rows) {
  const TrainState state = read_state(folder);
  const auto there = std::ranges::count_if(rows, [&](const auto& row) { return knows_row(state, row); });
  if (there >= state.metrics_rows) return "";
  return concat("metrics.jsonl has ", there, " of the ", state.metrics_rows, " rows up to its step");
}

struct Rejected {
  Checkpoint checkpoint;
  const char* kind;  // prefix of its new name
  std::string reason;
};

[[noreturn]] void refuse(const RunDir& run, const std::vector<Rejected>& rejected) {
  std::vector<std::string> reasons;
  bool unlogged = false;
  for (const auto& [checkpoint, kind, reason] : rejected) {
    reasons.push_back(concat(checkpoint.path.filename().string(), ": ", reason));
    unlogged = unlogged || std::string_view(kind) == "unlogged";
  }
  throw DataError(run.path().string(),
                  concat("there is no checkpoint to resume from, and nothing was changed. ", join(reasons, "; "), ". ",
                         unlogged ? "Restore metrics.jsonl from a copy, or move it away to resume without its rows."
                                  : "Restore one from a copy, or start a new run with another --out."));
}

}  // namespace

void settle_resume_point(RunDir& run) {
  const std::vector<Checkpoint> all = run.checkpoints();
  const bool has_log = fs::exists(run.metrics());
  const Rows rows = has_log ? MetricsLog::read(run.metrics()) : Rows();
  std::vector<Rejected> rejected;
  auto chosen = all.rbegin();
  for (; chosen != all.rend(); ++chosen) {
    if (std::string reason = damage_in(chosen->path); !reason.empty())
      rejected.push_back({*chosen, "damaged", std::move(reason)});
    else if (reason = has_log ? lost_rows_of(chosen->path, rows) : ""; !reason.empty())
      rejected.push_back({*chosen, "unlogged", std::move(reason)});
    else
      break;
  }
  if (chosen == all.rend()) {
    if (!rejected.empty()) refuse(run, rejected);
    return;
  }
  if (!has_log && chosen->step > 0)
    log_line(concat(warning_label(STDERR_FILENO), run.metrics().string(), " is missing: the rows up to step ",
                    chosen->step, " will not be written again"));
  for (const auto& [checkpoint, kind, reason] : rejected) {
    const fs::path now = run.set_aside(checkpoint, kind);
    log_line(concat(warning_label(STDERR_FILENO), checkpoint.path.string(), " is set aside as ",
                    now.filename().string(), ": ", reason, ". The run resumes from step ", chosen->step,
                    "; delete what is set aside when you do not need it"));
  }
  run.relink(chosen->step, read_state(chosen->path).best_step);
}

}  // namespace normlab
