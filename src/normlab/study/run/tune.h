// [study.tune]: the same tuning for every variant. Each is trained once per value of one key, at full length, on a seed
// that the study does not use; the value with the lowest final loss goes into the variant's own trials. A best value at
// an edge of the grid extends the variant's grid once. The tuning trials are an ordinary study in DIR/tuning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "normlab/base/fields.h"

namespace normlab {

// The section [study.tune].
struct TuneConfig {
  std::string key = {};                  // "optim.lr"; empty: nothing is tuned
  std::vector<std::string> values = {};  // ascending, as `normlab config print` writes them
  int64_t seed = 0;

  bool wanted() const { return !key.empty(); }
};
// From the settings whose keys start with "study.tune."; `list` has the keys of a run's configuration.
TuneConfig read_tune(const std::vector<Setting>& settings, const FieldList& list);
std::string to_toml(const TuneConfig& tune, const FieldList& list);

// What the tuning of one variant has found so far.
struct TunedVariant {
  std::vector<std::string> values = {};  // ascending; with the one that extends the grid, where there is one
  std::vector<double> losses = {};       // final validation loss; infinite: diverged; NaN: not ended yet
  std::optional<size_t> best = {};       // once all have ended
  bool extended = false;

  bool at_edge() const { return best && (*best == 0 || *best + 1 == values.size()); }
};
// The best value, once every loss is known; the smaller one where two are equal.
std::optional<size_t> best_value(const std::vector<double>& losses);
// The value beyond the edge at which the grid's best value lies, by the factor between the last two values; none for a
// best value inside the grid, or where the key's range ends.
std::optional<std::string> extension(const TuneConfig& tune, size_t best, const FieldList& list);

}  // namespace normlab
