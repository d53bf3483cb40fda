// What a checkpoint holds besides tensors: state.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "normlab/probe/watchdog.h"

namespace normlab {

// What the trainer must remember besides weights and moments.
struct TrainState {
  int64_t step = 0;        // updates made
  int64_t last_eval = -1;  // step of the last evaluation
  double val_loss = 0.0;   // of that evaluation
  double best_loss = 0.0;  // least validation loss so far, at best_step
  int64_t best_step = -1;
  int evals_since_best = 0;
  double train_seconds = 0.0, train_cpu_seconds = 0.0;
  std::string data_sha256 = {};  // of the text
  int64_t metrics_rows = -1;     // rows of metrics.jsonl that a resume keeps; < 0: not known
  WatchdogMemory watchdog = {};
  std::vector<double> bleus = {};  // of a translator, at each evaluation; the best is that of best_step
  double lr_factor = 1.0;          // decays of a plateau so far
  double test_bleu = -1.0;         // of a translator that is done; < 0: not known
};

// Replaces state.json of a checkpoint whose weights stay as they are.
void update_state(const std::filesystem::path& folder, const TrainState& state);

// DataError when state.json is damaged.
TrainState read_state(const std::filesystem::path& folder);

// Whether a run that resumes from the checkpoint keeps a row of metrics.jsonl; the others it writes again: those of
// later steps, an evaluation at its own step that it does not know of, and that of the test text.
bool knows_row(const TrainState& state, const nlohmann::ordered_json& row);

}  // namespace normlab
