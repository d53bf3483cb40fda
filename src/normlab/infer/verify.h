// Our numbers against those of other implementations, from files of their weights, inputs and results.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/base/stop.h"

namespace normlab {

struct Check {
  std::string name;
  double error = 0.0, bound = 0.0;
  bool passed() const { return error <= bound; }  // false for NaN
};

// Logits, loss, every gradient and, where the file has them, hypotheses and ten steps of training. `kernels` is a value
// of model.kernels. DataError when the file is not one of reference values or lacks some; Error when stopped.
std::vector<Check> verify_file(const std::filesystem::path& path, const std::string& kernels,
                               const StopToken& stop = never_stop);

}  // namespace normlab
