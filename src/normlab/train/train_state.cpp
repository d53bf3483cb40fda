#include "normlab/train/train_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/record/checksums.h"
#include "normlab/record/run_dir.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* state_file = "state.json";

json memory_to_json(const WatchdogMemory& memory) {
  json known = json::array();
  for (const auto& [rule, stack, layer, head] : memory.known)
    known.push_back({watchdogs()[rule].name, name_of(stack), layer, head});
  return {{"losses", memory.losses}, {"grad_norms", memory.grad_norms}, {"known", known}};
}

// json::exception when it is not one.
WatchdogMemory memory_from_json(const json& in) {
  WatchdogMemory memory{.losses = in.at("losses"), .grad_norms = in.at("grad_norms"), .known = {}};
  for (const json& each : in.at("known")) {
    const auto rule = std::ranges::find(watchdogs(), each.at(0).get<std::string>(), &WatchdogRow::name);
    const auto stack = std::ranges::find(all_stacks, each.at(1).get<std::string>(),
                                         [](Stack one) { return std::string(name_of(one)); });
    if (rule == watchdogs().end() || stack == std::end(all_stacks)) continue;  // of another version
    memory.known.insert({static_cast<size_t>(rule - watchdogs().begin()), *stack, each.at(2), each.at(3)});
  }
  return memory;
}

json to_json(const TrainState& s) {
  json out = {{"step", s.step},
              {"last_eval", s.last_eval},
              {"best_step", s.best_step},
              {"evals_since_best", s.evals_since_best},
              {"train_seconds", s.train_seconds},
              {"train_cpu_seconds", s.train_cpu_seconds},
              {"data_sha256", s.data_sha256}};
  if (s.last_eval >= 0) out["val_loss"] = s.val_loss;
  if (s.best_step >= 0) out["best_loss"] = s.best_loss;
  if (s.metrics_rows >= 0) out["metrics_rows"] = s.metrics_rows, out["watchdog"] = memory_to_json(s.watchdog);
  if (!s.bleus.empty()) out["bleus"] = s.bleus, out["lr_factor"] = s.lr_factor;
  if (s.test_bleu >= 0.0) out["test_bleu"] = s.test_bleu;
  seal(out);
  return out;
}

TrainState from_json(const json& in) {
  return {.step = in.at("step"),
          .last_eval = in.at("last_eval"),
          .val_loss = in.value("val_loss", 0.0),
          .best_loss = in.value("best_loss", 0.0),
          .best_step = in.at("best_step"),
          .evals_since_best = in.at("evals_since_best"),
          .train_seconds = in.at("train_seconds"),
          .train_cpu_seconds = in.value("train_cpu_seconds", 0.0),
          .data_sha256 = in.at("data_sha256"),
          .metrics_rows = in.value("metrics_rows", int64_t{-1}),
          .watchdog = in.contains("watchdog") ? memory_from_json(in["watchdog"]) : WatchdogMemory{},
          .bleus = in.value("bleus", std::vector<double>()),
          .lr_factor = in.value("lr_factor", 1.0),
          .test_bleu = in.value("test_bleu", -1.0)};
}

}  // namespace

void update_state(const fs::path& folder, const TrainState& state) {
  write_file_atomically(folder / state_file, to_json(state).dump(2) + "\n");
}

TrainState read_state(const fs::path& folder) {
  const fs::path path = folder / state_file;
  const json in = parse_json(read_file(path));
  if (in.is_discarded()) throw DataError(path.string(), "is not JSON: the checkpoint is damaged. Use another one.");
  if (!is_intact(in)) throw DataError(path.string(), "has changed since it was written: the checkpoint is damaged.");
  try {
    const TrainState state = from_json(in);
    const int64_t of_folder = checkpoint_step(folder).value_or(state.step);
    if (state.step < 0 || state.step != of_folder || state.last_eval < -1 || state.last_eval > state.step ||
        state.best_step < -1 || state.best_step > state.step || state.evals_since_best < 0)
      throw DataError(path.string(),
                      concat("holds steps that cannot be (step ", state.step, ", last evaluation ", state.last_eval,
                             ", best ", state.best_step, "): the checkpoint is damaged. Use another one."));
    return state;
  } catch (const json::exception& error) {
    throw DataError(path.string(), concat("does not hold the state of a run (", error.what(), ")."));
  }
}

bool knows_row(const TrainState& state, const nlohmann::ordered_json& row) {
  const int64_t step = row["step"];
  if (row.contains("test_bleu")) return false;
  return step < state.step || (step == state.step && (!row.contains("val_loss") || state.last_eval == step));
}

}  // namespace normlab
