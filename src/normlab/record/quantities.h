// What the probes measure: names and definitions, written once. Help, documents, logs and pages read this table.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "normlab/record/place.h"

namespace normlab {

enum class Quantity {
  max_logit,
  min_logit,
  logit_norm,
  logit_rms,
  logit_spread,
  entropy,
  relative_entropy,
  min_entropy,
  saturated,
  q_norm,
  k_norm,
  q_peak,
  k_peak,
  gain,
  p,
  grad_w_q,
  grad_w_k,
  grad_w_v,
  grad_w_o,
  grad_q,
  grad_k,
  grad_v,
  grad_attn_out,
  grad_mlp_out,
  update_w_q,
  update_w_k,
  update_w_v,
  update_w_o,
  angle_w_q,
  angle_w_k,
  stream_norm,
  log_partition,
};

struct QuantityRow {
  const char* group;  // the first part of its name: attn, grad, update, stream, output
  const char* key;    // the last part
  const char* definition;
};
// In the order of the enumerators.
std::span<const QuantityRow> quantities();
const QuantityRow& row_of(Quantity quantity);
// A line that explains the symbols, and one for each row.
std::string definitions();

// One value. Head -1: of the whole layer. Layer -1: of the whole model.
struct Reading {
  Quantity quantity;
  int layer = -1, head = -1;
  double value = 0.0;
  Stack stack = Stack::layers;
};
std::string name_of(const Reading& reading);  // "attn/layer03/head1/entropy", of a translator "attn/cross03/entropy"

}  // namespace normlab
