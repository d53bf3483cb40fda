// A layer as decoding runs it: rows of single tokens, on floats that are prepared once. No autograd and no allocation.
// The bits of a row do not depend on the rows beside it, so that a text does not depend on what is decoded with it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "normlab/kernels/activation.h"
#include "normlab/kernels/decode_attention.h"
#include "normlab/ops/add_norm.h"
#include "normlab/ops/decode_heads.h"

namespace normlab {

// y = factor x W^T + b.
struct DecodeLinear {
  torch::Tensor weight, bias = {};  // [out, in]; [out] or undefined
  float factor = 1.0F;
  const float* packed = nullptr;  // W for matmul_packed, in the memory of the plan

  size_t in() const { return static_cast<size_t>(weight.size(1)); }
  size_t out() const { return static_cast<size_t>(weight.size(0)); }
  void operator()(const float* x, size_t rows, float* y) const;
};

// A new token: where it stands, and what it sees.
struct DecodeRow {
  int64_t position = 0;
  const int32_t* slots = nullptr;  // of the tokens up to this one, its own the last: position + 1 of them
  size_t sentence = 0;             // of the encoder's output
};

// Keys and values of one attention.
struct DecodeKeys {
  torch::Tensor k, v;  // [slots, kv_heads, d]
};
struct DecodeMemory {
  torch::Tensor k, v;       // [b, s, kv_heads, d]
  torch::Tensor lengths_b;  // int64
};

// What one thread works on, for up to `rows` rows.
struct DecodeBuffers {
  std::vector<float> x, branch, normed, wide, hidden, queries, statistics, weights;
  bool pending = false;  // the branch is yet to be added to x

  void reserve(size_t rows, size_t d_model, size_t widest, size_t keys);
};

// y = norm(x), after x += branch where there is a branch.
struct DecodeNorm {
  NormForm form;
  NormWeights weights;  // with the factor
  void operator()(size_t rows, size_t cols, float* x, const float* branch, float* y, float* statistics) const;
};

// x = the residual of x and branch, where it is a lerp.
struct DecodeJoin {
  Residual kind = Residual::add;
  bool first = false;
  torch::Tensor stream, branch;  // [c]: factors of both, or alpha as that of the branch
  void operator()(size_t rows, size_t cols, float* x, const float* b, float* statistics) const;
};

struct DecodeAttend {
  DecodeLinear in;      // queries, keys and values; in cross-attention queries only
  DecodeLinear memory;  // keys and values of the encoder's output, in cross-attention
  DecodeLinear out;
  DecodeHeads queries, keys;
  AttentionForm form;
  size_t heads = 0, kv_heads = 0, d = 0;

  // From x to the branch of the buffers.
  void itself(const float* x, std::span<const DecodeRow> rows, const DecodeKeys& kept, DecodeBuffers& at) const;
  void across(const float* x, std::span<const DecodeRow> rows, const DecodeMemory& kept, DecodeBuffers& at) const;
  // Keys and values of `tokens` tokens of the encoder's output.
  void remember(const float* x, size_t tokens, float* k, float* v, std::vector<float>& buffer) const;

 private:
  DecodeAttention unit(int64_t keys) const;
};

struct DecodeMlp {
  DecodeLinear in, out;
  Activation activation = Activation::gelu;
  torch::Tensor scale;  // [rows of in] or undefined
  void operator()(const float* x, size_t rows, DecodeBuffers& at) const;
};

struct DecodeLayer {
  NormPlacement placement = NormPlacement::pre;
  DecodeNorm attn_norm, cross_norm, mlp_norm;
  DecodeNorm attn_branch_norm, cross_branch_norm, mlp_branch_norm;  // of NormPlacement::both
  DecodeJoin attn_join, mlp_join;
  DecodeAttend attn;
  std::optional<DecodeAttend> cross;
  DecodeMlp mlp;

  // x of the buffers through the layer.
  void operator()(std::span<const DecodeRow> rows, const DecodeKeys& kept, const DecodeMemory& memory,
                  DecodeBuffers& at) const;
  void visit_linears(const std::function<void(DecodeLinear&)>& visitor);
};

}  // namespace normlab
