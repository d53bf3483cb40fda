// Constants and gains absorbed into weights, where the logits stay the same: what is left to compute is the plain
// model.
//
//   nu, s_uv          rows of the MLP's maps                                   up, gate; out where there is no gate
//   lerp_nu, lerp     h <- A o h + B o b:  with D <- A o D from layer to layer, h = D o h', B / D goes into the rows of
//                     the maps onto the stream, D into the columns of the maps that read it: an ordinary addition
//   l2 gain, scale    w_q = scale g / sqrt(d), w_k = 1 of an RMS norm of q and k, as x / |x|_2 = rms(x) / sqrt(d)
//   gain without norm rows of W_q
//   s_z, fixnorm      rows of the head, which is untied from the embedding
//   embedding scale   rows of the embedding, which is untied from the head
//   sigma-Reparam     W <- gamma W / sigma(W)
//   1/sqrt(layer)     gains of the sublayer norms
//
// Everything else is kept, with the reason.
#pragma once

#include <string>
#include <vector>

#include "normlab/models/decoder_lm.h"

namespace normlab {

struct Absorbed {
  ModelConfig config;
  NormScheme scheme;
  NamedTensors tensors = {};  // every tensor of the absorbed model, in the float type of the given one
  std::vector<std::string> absorbed = {}, kept = {};  // one line each; `kept` with the reason
};

// UsageError when there is nothing to absorb.
Absorbed absorb(DecoderLm& model);

// The absorbed model itself.
DecoderLm absorbed_model(const Absorbed& absorbed, int vocab_size, torch::TensorOptions options = torch::kFloat32);

}  // namespace normlab
