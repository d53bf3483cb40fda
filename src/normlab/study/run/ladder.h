// Ladders: models of several sizes from one dial, each with its horizon, batch and learning rate by stated rules.
//
//   n_layers = depth,   d_model = depth width_per_layer,   n_heads = d_model / head_width,   d_ff = 4 d_model
//   W = entries of the matrices of all blocks,   tokens as said, or tokens_per_param W
//   C = W tokens, over that of the first depth and the first horizon of the study
//   batch_size = train.batch_size C^batch_exponent,   lr = optim.lr C^-lr_exponent, and min_lr likewise
//   max_steps = tokens / (batch_size accumulate seq_len), rounded up,   eval_every = max_steps / evaluations
//
// W is the same for all schemes, so that they see the same tokens. The default exponents are those of DeepSeek LLM
// (arXiv 2401.02954).
#pragma once

#include <cstdint>
#include <vector>

#include "normlab/base/fields.h"

namespace normlab {

// The section [ladder]; depth, tokens and tokens_per_param may be lists.
struct LadderConfig {
  int depth = 0;
  int64_t tokens = 0;
  double tokens_per_param = 20.0;
  int width_per_layer = 64;
  int head_width = 64;
  double batch_exponent = 0.3271;
  double lr_exponent = 0.125;
  int evaluations = 0;
};
void list_fields(LadderConfig& config, FieldList& list);

bool is_ladder_key(const std::string& key);
// UsageError for a list where there must be none, rules without depths, or two kinds of horizons.
void check_ladder(const std::vector<Setting>& ladder);

// What a rung sets in a run's configuration. `ladder`: the study's [ladder], with lists; `chosen`: one value of each
// list; `run`: everything else that is said of the run. UsageError when that sets what the rules derive.
std::vector<Setting> rung_settings(const std::vector<Setting>& ladder, const std::vector<Setting>& chosen,
                                   const std::vector<Setting>& run);

}  // namespace normlab
