#include "models/init.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "base/random.h"

namespace normlab {
namespace {

// Standard deviations of the normal draws; gains, biases and p keep what their module gave them.
struct InitRow {
  InitRule rule;
  double embedding, position, weight;  // projections onto the residual stream: weight / sqrt(2 n_layers)
};
constexpr InitRow rows[] = {
    {InitRule::nanogpt, 0.02, 0.02, 0.02},  // nanoGPT model.py
    {InitRule::gpt2, 0.02, 0.01, 0.02},     // Radford et al. 2019
};

double deviation(const InitRow& row, Role role, int n_layers) {
  switch (role) {
    case Role::embedding:
      return row.embedding;
    case Role::position:
      return row.position;
    case Role::weight:
      return row.weight;
    case Role::residual_weight:
      return row.weight / std::sqrt(2.0 * n_layers);
    default:
      return 0.0;
  }
}

uint64_t name_key(const std::string& name) {
  uint64_t key = 0;
  for (unsigned char c : name) key = stream_key(key, c);
  return key;
}

}  // namespace

void initialise(DecoderLm& model, const ModelConfig& config, uint64_t seed) {
  const InitRow& row = rows[static_cast<int>(config.init)];
  model.visit([&](const std::string& name, torch::Tensor& tensor, Role role) {
    const double std = deviation(row, role, config.n_layers);
    if (std == 0.0 || tensor.is_meta()) return;
    // A generator a name: schemes that add a gain start from the same weights as those without.
    tensor.normal_(0.0, std, at::detail::createCPUGenerator(stream_key(seed, name_key(name))));
  });
}

}  // namespace normlab
