// normlab verify: what the checks of language models and of translators share.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "record/safetensors.h"

namespace normlab {

// Largest relative errors allowed. Ten steps of Adam turn the last bits of small gradients into whole steps of lr,
// hence the wider bound on the weights after them.
constexpr double logits_bound = 2e-5, gradient_bound = 2e-4, losses_bound = 1e-4, after_bound = 2e-3;

struct Check {
  std::string name;
  double error = 0.0, bound = 0.0;
  bool passed() const { return error <= bound; }  // false for NaN
};

// Largest difference over the largest expected entry.
double relative_error(const torch::Tensor& got, const torch::Tensor& expected);

std::string reference_metadata(const SafetensorsFile& file, const std::string& key);

std::vector<Check> verify_translator(const SafetensorsFile& file, const std::string& kernels);

}  // namespace normlab
