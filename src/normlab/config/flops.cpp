// Forward and backward of B x T tokens:
//   6 * (12 n_layers d_model^2 + V d_model) * B T  +  3 * n_layers * 2 T d_model * B T
// The first term is two operations for each weight and token, forward and twice backward; the second is causal
// attention, of which only the visible half counts, or with a window of w keys T - (T - w)^2 / T in place of T.
// A forward pass alone is a third.
#include "normlab/config/flops.h"

#include <algorithm>

namespace normlab {
namespace {

double flops_of_token(const ModelConfig& model, int vocab_size) {
  const double width = double{1} * model.n_heads * model.d_head;
  const double length = model.seq_len;
  double seen = 0.0;  // over the layers, twice the keys that a query sees on average
  for (int layer = 0; layer < model.n_layers; ++layer) {
    const double window = window_of_layer(model, layer), beyond = window > 0.0 ? std::max(0.0, length - window) : 0.0;
    seen += length - beyond * beyond / length;
  }
  return 6.0 * matrix_entries(model, vocab_size) + 3.0 * seen * 2.0 * width;
}

}  // namespace

double matrix_entries(const ModelConfig& model, int vocab_size) {
  const double d = model.d_model, channels = model.d_head;
  const double qkv = d * channels * (model.n_heads + 2 * model.n_kv_heads), out = d * channels * model.n_heads;
  const double mlp = d * model.d_ff * (is_gated(model.activation) ? 3 : 2);
  return model.n_layers * (qkv + out + mlp) + vocab_size * d;
}

double flops_of_step(const Config& config, int vocab_size) {
  if (config.translation.wanted()) {  // as many tokens on either side; attention, a small part, is left out
    ModelConfig encoder = config.model;
    encoder.n_layers = config.translation.encoder_layers;
    const double d = config.model.d_model, cross = 4.0 * d * config.model.n_heads * config.model.d_head;
    const double entries =
        matrix_entries(config.model, vocab_size) + matrix_entries(encoder, 0) + config.model.n_layers * cross;
    return 6.0 * entries * static_cast<double>(config.translation.batch_tokens) * config.train.accumulate;
  }
  const double tokens = double{1} * config.train.batch_size * config.train.accumulate * config.model.seq_len;
  return tokens * flops_of_token(config.model, vocab_size);
}

double flops_of_run(const Config& config, int vocab_size, int64_t held_out_tokens) {
  const TrainConfig& train = config.train;
  const double steps = static_cast<double>(train.max_steps);
  if (config.translation.wanted()) return steps * flops_of_step(config, vocab_size);
  // Before the first step, every eval_every steps, and at the end.
  double evaluations = 1.0;
  if (train.eval_every > 0)
    evaluations += static_cast<double>(train.max_steps / train.eval_every + (train.max_steps % train.eval_every != 0));
  double tokens = static_cast<double>(held_out_tokens);
  if (train.eval_windows > 0) tokens = std::min(tokens, double{1} * train.eval_windows * config.model.seq_len);
  return steps * flops_of_step(config, vocab_size) +
         evaluations * tokens * flops_of_token(config.model, vocab_size) / 3.0;
}

}  // namespace normlab
