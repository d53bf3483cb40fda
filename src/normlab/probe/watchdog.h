// Watchdogs: what in the losses and the readings of a run is a sign of trouble.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "normlab/norm/scheme.h"
#include "normlab/record/quantities.h"

namespace normlab {

// What the watchdogs look for, for documents and help.
struct WatchdogRow {
  const char* name;
  const char* sign;                      // when it barks
  const char* meaning;                   // what it means
  const char* answer;                    // which scheme or setting answers it
  const char* bounded_answer = nullptr;  // and when the scheme bounds the logits already, if that is another
};
std::span<const WatchdogRow> watchdogs();

// Queries and keys have a norm, or the logits a cap.
bool bounds_logits(const NormScheme& scheme);

// What a watchdog has seen; a resumed run continues with that of its checkpoint, and warns as if never stopped.
struct WatchdogMemory {
  std::deque<double> losses = {}, grad_norms = {};           // of the last steps
  std::set<std::tuple<size_t, Stack, int, int>> known = {};  // what was said: row of watchdogs(), stack, layer, head
};

class Watchdog {
 public:
  // Uniform attention is no sign of trouble before `settled`, a step. `bounded`: bounds_logits() of the scheme.
  explicit Watchdog(int64_t settled, bool bounded = false) : settled_(settled), bounded_(bounded) {}

  // Lines to be shown, none when all is well.
  std::vector<std::string> after_step(int64_t step, double loss, double grad_norm);
  // Each sign is said once of a head or layer.
  std::vector<std::string> after_probe(int64_t step, const std::vector<Reading>& readings);

  const WatchdogMemory& memory() const { return memory_; }
  void restore(const WatchdogMemory& memory) { memory_ = memory; }

 private:
  int64_t settled_;
  bool bounded_;
  WatchdogMemory memory_;
};

}  // namespace normlab
