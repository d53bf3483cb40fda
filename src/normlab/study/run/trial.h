// A trial: what is known of it on disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/study/run/plan.h"

namespace normlab {

enum class TrialStatus {
  missing,   // not begun
  started,   // stopped, killed, or running now
  finished,  // to the last step, or to an early stop
  diverged,  // the loss is not finite: a result like any other, not tried again
  crashed,   // tried again
  damaged,   // files are missing or not readable: left alone until its folder is deleted
};
const char* name_of(TrialStatus status);

// trial.json in the folder of a trial, written when it ends.
struct TrialRecord {
  TrialStatus status = TrialStatus::missing;
  int64_t step = 0;                                     // updates made
  std::optional<double> val_loss = {}, best_loss = {};  // the last and the least validation loss
  int64_t parameters = 0;
  double train_seconds = 0.0, train_cpu_seconds = 0.0;  // of training steps, without evaluation, over all sessions
  std::string data_sha256 = {};                         // of the text
  std::string message = {};                             // why it crashed, diverged or is damaged

  bool ended() const { return status == TrialStatus::finished || status == TrialStatus::diverged; }
};
TrialRecord read_trial(const Trial& trial);

// How far it is, from the end of metrics.jsonl: cheap for a file of any length.
struct Glance {
  int64_t step = 0;
  std::optional<double> loss, val_loss;
};
Glance glance(const Trial& trial);

// "norm.p is 2 there and 3 in the study": keys in which the trial on disk differs from this one, except for those that
// leave its results alone. Nothing when it was not begun.
std::vector<std::string> config_differences(const Trial& trial);

// Refuses a trial that was begun under another configuration, except for keys that leave its results alone.
void require_same_trial(const Trial& trial);

void write_record(const Trial& trial, const TrialRecord& record);
void forget_crash(const Trial& trial);  // so that the trial may be tried again

// Unless another process is running the trial.
void record_crash(const Trial& trial, const std::string& message);

}  // namespace normlab
