// The shape of a model, and its fields.
#pragma once

#include <string>

#include "normlab/kernels/activation.h"
#include "normlab/norm/scheme.h"

namespace normlab {

enum class Positions { learned, sinusoidal, rope, sine };
enum class RopeScaling { none, linear, llama3 };
enum class InitRule { nanogpt, gpt2, small };
enum class Kernels { best, fused, composite };
enum class Precision { float32, bfloat16 };

struct ModelConfig {
  int n_layers = 6;
  int n_heads = 6;
  int n_kv_heads = 0;
  int d_model = 384;
  int d_head = 0;
  int d_ff = 0;
  int seq_len = 256;
  int window = 0;
  int global_every = 0;
  Activation activation = Activation::gelu;
  Positions positions = Positions::learned;
  RopePairing rope_pairing = RopePairing::half;
  double rope_base = 10000.0;
  double rope_base_local = 0.0;
  RopeScaling rope_scaling = RopeScaling::none;
  double rope_factor = 8.0;
  int rope_original_len = 8192;
  bool bias = false;
  bool tied_head = true;
  double dropout = 0.0;
  double mlp_dropout = 0.0;
  InitRule init = InitRule::nanogpt;
  Kernels kernels = Kernels::best;
  bool checkpoint_activations = false;
  Precision dtype = Precision::float32;  // of matrix products; the key is train.dtype
};

void list_fields(ModelConfig& config, FieldList& list);

// Fills what is derived (0 means: derive) and refuses shapes that do not fit. This is the one place where kernels are
// chosen: `best` becomes fused, or composite where the fused kernels do not serve the model.
void resolve_model(ModelConfig& config, const NormScheme& scheme);

// AttentionForm::window of a layer, 0 for all keys.
int window_of_layer(const ModelConfig& config, int layer);

// Why the fused kernels cannot serve this model; empty when they can.
std::string why_not_fused(const ModelConfig& config, const NormScheme& scheme);

}  // namespace normlab
