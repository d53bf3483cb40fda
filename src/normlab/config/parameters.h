// The parameters of a language model by name, shape and role, without making its tensors. DecoderLm::visit shows the
// same list; tests/models/parameters_test.cpp compares the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "normlab/config/model_config.h"

namespace normlab {

// What a tensor is for; the initialisation table (models/init.cpp) has a row for each.
enum class Role {
  embedding,
  language,
  position,
  weight,
  residual_weight,  // of a map onto the residual stream
  bias,
  norm_gain,
  norm_bias,
  qk_gain,
  qk_p,
  scale,  // alpha, s_uv, s_z, gamma: starts as its module says
  state,  // not trained, but part of a checkpoint
};

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  Role role;
  std::optional<double> start = {};  // of all entries; none where they are drawn, or follow from what is drawn

  int64_t size() const;
};
// `model` resolved.
std::vector<ParameterSpec> parameters_of(const ModelConfig& model, const NormScheme& scheme, int vocab_size);

struct ParameterCount {
  int64_t total = 0;
  int64_t body = 0;  // without token embedding, learned positions, output head and its scales
};
ParameterCount count_parameters(const ModelConfig& model, const NormScheme& scheme, int vocab_size);

// Entries of a layer's own gain of the logits; 0 when it has none or the model holds it.
int64_t gain_size(const ModelConfig& model, const NormScheme& scheme);
// Entries of the channel gains of q or k, which has `heads` heads; 0 when there are none.
int64_t affine_size(const ModelConfig& model, const NormScheme& scheme, int heads);
// Entries of alpha.
int64_t alpha_size(const ModelConfig& model, const NormScheme& scheme);

// Values that gain and alpha start with, and the raw start of a learned p = 1 + softplus(raw).
double initial_gain(const ModelConfig& model, const NormScheme& scheme);
double initial_alpha(const ModelConfig& model, const NormScheme& scheme);
double initial_raw_p(const NormScheme& scheme);
// What is stored (nn/scaled_parameter.h) of a scale that starts at `init`, and of the gain.
double stored_start(const ModelConfig& model, const NormScheme& scheme, double init);
double stored_gain(const ModelConfig& model, const NormScheme& scheme);

}  // namespace normlab
