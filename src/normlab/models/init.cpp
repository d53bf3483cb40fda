#include "normlab/models/init.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <numbers>

#include "normlab/base/random.h"

namespace normlab {
namespace {

// Standard deviations of the normal draws; gains, biases and p keep what their module gave them.
struct InitRow {
  InitRule rule;
  double embedding, position, weight;  // projections onto the residual stream: weight / sqrt(2 n_layers)
};
constexpr InitRow init_rows[] = {
    {InitRule::nanogpt, 0.02, 0.02, 0.02},  // nanoGPT model.py
    {InitRule::gpt2, 0.02, 0.01, 0.02},     // Radford et al. 2019
};

// SmallInit (Nguyen and Salazar 2019): the matrices of an attention are drawn as one of 4d x d would be, those of the
// MLP by their own shape, and rows of embeddings that are normalised at every use are small, so that they turn fast.
constexpr double fixnorm_embedding = 0.01 / std::numbers::sqrt3;  // the deviation of their U(-0.01, 0.01)

double small_deviation(const std::string& name, const torch::Tensor& tensor, Role role, const NormScheme& scheme) {
  const auto d = static_cast<double>(tensor.size(-1));
  switch (role) {
    case Role::embedding:
      return scheme.embedding == EmbeddingNorm::fixnorm ? fixnorm_embedding : 1.0 / std::sqrt(d);
    case Role::language:
    case Role::position:
      return 1.0 / std::sqrt(d);
    case Role::weight:
    case Role::residual_weight:
      if (name.find(".mlp.") == std::string::npos) return std::sqrt(2.0 / (5.0 * d));
      return std::sqrt(2.0 / static_cast<double>(tensor.size(0) + tensor.size(1)));
    default:
      return 0.0;
  }
}

double deviation(const InitRow& row, Role role, int n_layers) {
  switch (role) {
    case Role::language:
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

ModelConfig for_tensors(ModelConfig config, torch::TensorOptions options) {
  if (options.dtype() != torch::kFloat32 || options.device() != torch::kCPU) config.kernels = Kernels::composite;
  return config;
}

bool is_elsewhere(torch::TensorOptions options) {
  return options.device() != torch::kCPU && options.device() != torch::kMeta;
}

void initialise(const std::function<void(const ParameterVisitor&)>& visit, const ModelConfig& config,
                const NormScheme& scheme, uint64_t seed) {
  visit([&](const std::string& name, torch::Tensor& tensor, Role role) {
    const double std = config.init == InitRule::small
                           ? small_deviation(name, tensor, role, scheme)
                           : deviation(init_rows[static_cast<int>(config.init)], role, config.n_layers);
    if (std == 0.0 || tensor.is_meta()) return;
    // A generator a name: schemes that add a gain start from the same weights as those without.
    tensor.normal_(0.0, std, at::detail::createCPUGenerator(stream_key(seed, name_key(name))));
  });
}

}  // namespace normlab
