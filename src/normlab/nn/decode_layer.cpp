#include "normlab/nn/decode_layer.h"

#include <algorithm>
#include <cmath>

#include "normlab/kernels/layer_norm.h"
#include "normlab/kernels/lerp_norm.h"
#include "normlab/kernels/matmul.h"
#include "normlab/kernels/weighted_sum.h"
#include "normlab/ops/float_data.h"

namespace normlab {
namespace {

// factor x / max(||x||_2, eps) of one row, which may be written over.
void unit_row(const float* x, size_t cols, double eps, double factor, float* y) {
  double sum = 0.0;
  for (size_t i = 0; i < cols; ++i) sum += double{x[i]} * double{x[i]};
  const double scale = factor / std::max(std::sqrt(sum), eps);
  for (size_t i = 0; i < cols; ++i) y[i] = static_cast<float>(scale * double{x[i]});
}

void add_to_rows(size_t count, const float* from, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

void DecodeLinear::operator()(const float* x, size_t rows, float* y) const {
  const float* b = data(bias);
  const bool bias_first = b && factor == 1.0F;  // the product is added to it
  for (size_t row = 0; bias_first && row < rows; ++row) std::copy_n(b, out(), y + row * out());
  matmul_packed({x, rows, in(), in(), 1}, packed, out(), bias_first, y);
  if (factor == 1.0F) return;
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < out(); ++i) y[row * out() + i] = y[row * out() + i] * factor + (b ? b[i] : 0.0F);
}

void DecodeBuffers::reserve(size_t rows, size_t d_model, size_t widest, size_t keys) {
  const auto grow = [](std::vector<float>& buffer, size_t floats) {
    if (buffer.size() < floats) buffer.resize(floats);
  };
  for (std::vector<float>* buffer : {&x, &branch, &normed}) grow(*buffer, rows * d_model);
  for (std::vector<float>* buffer : {&wide, &hidden}) grow(*buffer, rows * widest);
  grow(queries, widest);
  grow(statistics, 2 * rows);
  grow(weights, keys);
}

void DecodeNorm::operator()(size_t rows, size_t cols, float* x, const float* branch, float* y,
                            float* statistics) const {
  const float *weight = data(weights.weight), *bias = data(weights.bias);
  if (form.kind == SublayerNorm::layer || form.kind == SublayerNorm::rms) {
    const NormSpec spec{.cols = cols,
                        .rms = form.kind == SublayerNorm::rms,
                        .eps = static_cast<float>(form.eps),
                        .weight = weight,
                        .bias = bias,
                        .dropout_key = {}};
    return norm_forward(
        spec,
        {.x = x, .branch = branch, .sum = branch ? x : nullptr, .y = y, .mean = statistics, .rstd = statistics + rows},
        {0, rows});
  }
  if (branch) add_to_rows(rows * cols, branch, x);
  for (size_t row = 0; row < rows; ++row, x += cols, y += cols) {
    if (form.kind == SublayerNorm::none) std::copy_n(x, cols, y);
    if (form.kind == SublayerNorm::scale) unit_row(x, cols, form.eps, double{weight[0]}, y);
    if (form.kind == SublayerNorm::dyt)
      for (size_t i = 0; i < cols; ++i) y[i] = std::tanh(x[i] * data(weights.slope)[0]) * weight[i] + bias[i];
  }
}

void DecodeJoin::operator()(size_t rows, size_t cols, float* x, const float* b, float* statistics) const {
  if (kind != Residual::lerp_unit)
    return weighted_sum_forward({.h = x, .b = b, .a = data(stream), .c = data(branch)}, x, cols, {0, rows});
  for (size_t row = 0; first && row < rows; ++row) unit_row(x + row * cols, cols, 1e-12, 1.0, x + row * cols);
  lerp_norm_forward(
      {.h = x, .branch = b, .alpha = data(branch), .out = x, .b_scale = statistics, .z_scale = statistics + rows}, cols,
      {0, rows});
}

DecodeAttention DecodeAttend::unit(int64_t seen) const {
  const double factor = form.row_scale == RowScale::log_n ? std::log(static_cast<double>(seen)) : 1.0;
  return {.heads = heads,
          .group = heads / kv_heads,
          .d = d,
          .scale = static_cast<float>(form.logit_scale * factor),
          .soft_cap = static_cast<float>(form.soft_cap),
          .keys = static_cast<size_t>(seen)};
}

void DecodeAttend::itself(const float* x, std::span<const DecodeRow> rows, const DecodeKeys& kept,
                          DecodeBuffers& at) const {
  const size_t q_row = heads * d, kv_row = kv_heads * d, row = q_row + 2 * kv_row;
  float *const k = mutable_data(kept.k), *const v = mutable_data(kept.v);
  float *const wide = at.wide.data(), *const mixed = at.hidden.data(), *const q = at.queries.data();
  in(x, rows.size(), wide);
  for (size_t i = 0; i < rows.size(); ++i) {
    const float* from = wide + i * row + q_row;
    const auto slot = static_cast<size_t>(rows[i].slots[rows[i].position]);
    keys(from, rows[i].position, k + slot * kv_row);
    std::copy_n(from + kv_row, kv_row, v + slot * kv_row);
  }
  // A token of a prompt sees those before it, which are all there now.
  for (size_t i = 0; i < rows.size(); ++i) {
    queries(wide + i * row, rows[i].position, q);
    const int64_t before = rows[i].position + 1,
                  oldest = form.window > 0 ? std::max<int64_t>(0, before - form.window) : 0;
    DecodeAttention one = unit(before - oldest);
    one.q = q, one.k = k, one.v = v, one.slots = rows[i].slots + oldest, one.o = mixed + i * q_row;
    decode_attention(one, at.weights.data());
  }
  out(mixed, rows.size(), at.branch.data());
}

void DecodeAttend::across(const float* x, std::span<const DecodeRow> rows, const DecodeMemory& kept,
                          DecodeBuffers& at) const {
  const size_t q_row = heads * d, sentence = static_cast<size_t>(kept.k.size(1)) * kv_heads * d;
  float *const wide = at.wide.data(), *const mixed = at.hidden.data(), *const q = at.queries.data();
  in(x, rows.size(), wide);
  for (size_t i = 0; i < rows.size(); ++i) {
    queries(wide + i * q_row, /*position=*/0, q);
    DecodeAttention one = unit(kept.lengths_b.const_data_ptr<int64_t>()[rows[i].sentence]);
    one.q = q, one.o = mixed + i * q_row;
    one.k = data(kept.k) + rows[i].sentence * sentence, one.v = data(kept.v) + rows[i].sentence * sentence;
    decode_attention(one, at.weights.data());
  }
  out(mixed, rows.size(), at.branch.data());
}

void DecodeAttend::remember(const float* x, size_t tokens, float* k, float* v, std::vector<float>& buffer) const {
  const size_t kv_row = kv_heads * d;
  if (buffer.size() < tokens * 2 * kv_row) buffer.resize(tokens * 2 * kv_row);
  memory(x, tokens, buffer.data());
  for (size_t i = 0; i < tokens; ++i) {
    keys(buffer.data() + 2 * i * kv_row, /*position=*/0, k + i * kv_row);
    std::copy_n(buffer.data() + (2 * i + 1) * kv_row, kv_row, v + i * kv_row);
  }
}

void DecodeMlp::operator()(const float* x, size_t rows, DecodeBuffers& at) const {
  in(x, rows, at.wide.data());
  activation_forward({.kind = activation, .cols = in.out(), .scale = data(scale)}, at.wide.data(), at.hidden.data(),
                     {0, rows});
  out(at.hidden.data(), rows, at.branch.data());
}

void DecodeLayer::operator()(std::span<const DecodeRow> rows, const DecodeKeys& kept, const DecodeMemory& memory,
                             DecodeBuffers& at) const {
  const size_t n = rows.size(), cols = attn.in.in();
  // As add_branch() in block.cpp.
  const auto join = [&](const DecodeNorm& norm, const DecodeNorm& branch_norm, const DecodeJoin& lerp,
                        const auto& branch) {
    float *const x = at.x.data(), *const b = at.branch.data(), *const normed = at.normed.data();
    if (lerp.kind != Residual::add) {
      branch(x);
      return lerp(n, cols, x, b, at.statistics.data());
    }
    switch (placement) {
      case NormPlacement::pre:
        norm(n, cols, x, at.pending ? b : nullptr, normed, at.statistics.data());
        branch(normed);
        at.pending = true;
        return;
      case NormPlacement::post:
        branch(x);
        norm(n, cols, x, b, normed, at.statistics.data());
        return at.x.swap(at.normed);
      case NormPlacement::branch:
        branch(x);
        norm(n, cols, b, nullptr, normed, at.statistics.data());
        return add_to_rows(n * cols, normed, x);
      case NormPlacement::both:
        norm(n, cols, x, nullptr, normed, at.statistics.data());
        branch(normed);
        branch_norm(n, cols, b, nullptr, normed, at.statistics.data());
        return add_to_rows(n * cols, normed, x);
    }
  };
  join(attn_norm, attn_branch_norm, attn_join, [&](const float* x) { attn.itself(x, rows, kept, at); });
  if (cross)
    join(cross_norm, cross_branch_norm, DecodeJoin(), [&](const float* x) { cross->across(x, rows, memory, at); });
  join(mlp_norm, mlp_branch_norm, mlp_join, [&](const float* x) { mlp(x, n, at); });
}

void DecodeLayer::visit_linears(const std::function<void(DecodeLinear&)>& visitor) {
  for (DecodeAttend* attention : {&attn, cross ? &*cross : nullptr})
    for (DecodeLinear* linear : {attention ? &attention->in : nullptr, attention ? &attention->memory : nullptr,
                                 attention ? &attention->out : nullptr})
      if (linear && linear->weight.defined()) visitor(*linear);
  visitor(mlp.in), visitor(mlp.out);
}

}  // namespace normlab
