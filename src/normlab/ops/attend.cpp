// The product of queries and keys, its softmax and the sum of values.
#include <ATen/Context.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "normlab/ops/attention.h"
#include "normlab/ops/checkpoint.h"
#include "normlab/ops/precision.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr double never = -std::numeric_limits<double>::infinity();

Tensor repeat_heads(const Tensor& x_bshd, int64_t n_heads) {
  const int64_t group = n_heads / x_bshd.size(2);
  return group == 1 ? x_bshd : x_bshd.repeat_interleave(group, 2);
}

// [b, 1, 1, s]: true where a key is padding.
Tensor padding(const Tensor& key_lengths_b, int64_t s) {
  return torch::arange(s, key_lengths_b.options()).ge(key_lengths_b.unsqueeze(1)).unsqueeze(1).unsqueeze(1);
}

void record_largest(const Tensor& logits_bhts, MaxLogits& into) {
  const Tensor largest = logits_bhts.detach().amax({0, 2, 3}).to(torch::kCPU, torch::kFloat32).contiguous();
  for (int64_t head = 0; head < largest.numel(); ++head)
    into.add(static_cast<size_t>(head), largest.const_data_ptr<float>()[head]);
}

// [b, h, t, d], with the factor of each query.
Tensor scaled_queries(const Tensor& q_hat_bthd, int64_t s, const AttentionCall& call) {
  const Tensor q = q_hat_bthd.transpose(1, 2);
  if (call.form.row_scale == RowScale::one) return q;
  const Tensor factor = visible_keys(q.size(2), s, call).log().to(q.options());
  return q * factor.unsqueeze(1).unsqueeze(-1);
}

// PyTorch's own kernel has no soft-cap, no window and no triangle that ends at the last of more keys, and it tells no
// logits. Its dropout draws from a generator: only where the call says so. Without Python it has no meta kernel.
bool is_served_by_sdpa(const Tensor& q_bthd, int64_t s, const AttentionCall& call) {
  const int64_t t = q_bthd.size(1);
  const bool windowed = call.windowed() && call.form.window < s;
  const bool known_mask = !call.causal || (!windowed && (t == 1 || (t == s && !call.key_lengths_b.defined())));
  return known_mask && call.form.soft_cap <= 0.0 && (call.dropout.rate <= 0.0 || call.sdpa_dropout) &&
         !q_bthd.is_meta();
}

// The draws of SDPA's dropout depend on the key alone, whatever was drawn before.
void seed_generator(torch::Device device, const Dropout& how) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(stream_key((uint64_t{how.key.k1} << 32) | how.key.k0, how.first_row));
}

// Heads first, in the type of the values.
Tensor sdpa(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionCall& call) {
  const int64_t t = q.size(2), s = k.size(2);
  const bool triangle = call.causal && t == s && t > 1;
  const auto mask =
      call.key_lengths_b.defined() ? std::optional(padding(call.key_lengths_b, s).logical_not()) : std::nullopt;
  if (call.dropout.rate > 0.0) seed_generator(q.device(), call.dropout);
  return torch::scaled_dot_product_attention(q.to(v.scalar_type()), k.to(v.scalar_type()), v, mask,
                                             std::max(call.dropout.rate, 0.0), triangle, call.form.logit_scale);
}

// With the logits as a tensor: [b, h, t, d].
Tensor plain_attend(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const Tensor& v_bhsd, const AttentionCall& call,
                    MaxLogits* max_logits) {
  const Tensor logits = attention_logits(q_hat_bthd, k_hat_bshd, call);
  if (max_logits && !logits.is_meta()) record_largest(logits, *max_logits);
  return torch::matmul(dropout(logits.softmax(-1), call.dropout).to(v_bhsd.scalar_type()), v_bhsd);
}

// The same block of query rows by block; backward computes the logits of a block again.
Tensor attend_in_blocks(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const Tensor& v_bhsd,
                        const AttentionCall& call, MaxLogits* max_logits) {
  const int64_t t = q_hat_bthd.size(1);
  std::vector<Tensor> out;
  for (const QueryBlock& block : query_blocks(q_hat_bthd, k_hat_bshd.size(1), call)) {
    AttentionCall own = call;
    own.dropout.block = {.of_rows = t, .first = block.begin};
    const auto compute = [own, max_logits](const std::vector<Tensor>& in, bool) {
      return std::vector{plain_attend(in[0], in[1], in[2], own, max_logits)};
    };
    const std::vector<Tensor> in = {q_hat_bthd.slice(1, block.begin, block.end), k_hat_bshd.slice(1, 0, block.keys),
                                    v_bhsd.slice(2, 0, block.keys)};
    const bool for_backward = std::any_of(in.begin(), in.end(), [](const Tensor& x) { return x.requires_grad(); });
    out.push_back((for_backward ? checkpoint(in, compute) : compute(in, false)).front());
  }
  return torch::cat(out, 2);
}

}  // namespace

void MaxLogits::add(size_t head, float logit) noexcept {
  float known = values_[head].load();
  while (known < logit && !values_[head].compare_exchange_weak(known, logit)) {
  }
}

void MaxLogits::reset() noexcept {
  for (auto& value : values_) value.store(-std::numeric_limits<float>::infinity());
}

Tensor visible_keys(int64_t t, int64_t s, const AttentionCall& call) {
  const auto real =
      torch::TensorOptions(torch::kFloat64)
          .device(call.key_lengths_b.defined() ? call.key_lengths_b.device() : torch::Device(torch::kCPU));
  const Tensor end = call.causal ? torch::arange(s - t + 1, s + 1, real) : torch::full({t}, double(s), real);
  const Tensor begin = call.windowed() ? (end - call.form.window).clamp_min(0.0) : torch::zeros({1}, real);
  if (!call.key_lengths_b.defined()) return (end - begin).unsqueeze(0);
  const Tensor in_text = torch::minimum(end.unsqueeze(0), call.key_lengths_b.to(torch::kFloat64).unsqueeze(1));
  return (in_text - begin).clamp_min(1.0);
}

std::vector<QueryBlock> query_blocks(const Tensor& q_bthd, int64_t s, const AttentionCall& call) {
  const int64_t t = q_bthd.size(1), of_a_row = q_bthd.size(0) * q_bthd.size(2) * s;
  const int64_t rows = std::max<int64_t>(1, call.most_logits / std::max<int64_t>(1, of_a_row));
  if (rows >= t || (call.causal && t > s)) return {{0, t, s}};
  std::vector<QueryBlock> blocks;
  for (int64_t begin = 0; begin < t; begin += rows) {
    const int64_t end = std::min(begin + rows, t);
    blocks.push_back({begin, end, call.causal ? s - t + end : s});
  }
  return blocks;
}

Tensor attention_logits(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const AttentionCall& call) {
  const Autocast off(q_hat_bthd.device(), false);
  const Tensor k = widened(repeat_heads(k_hat_bshd, q_hat_bthd.size(2)).transpose(1, 2));
  const int64_t t = q_hat_bthd.size(1), s = k.size(2);
  const Tensor q = scaled_queries(widened(q_hat_bthd), s, call);
  Tensor logits = torch::matmul(q, k.transpose(2, 3)) * call.form.logit_scale;
  if (call.form.soft_cap > 0.0) logits = (logits / call.form.soft_cap).tanh() * call.form.soft_cap;
  if (call.causal) logits = logits + torch::full({t, s}, never, logits.options()).triu(s - t + 1);
  if (call.windowed() && call.form.window < s)
    logits = logits + torch::full({t, s}, never, logits.options()).tril(s - t - call.form.window);
  return call.key_lengths_b.defined() ? logits.masked_fill(padding(call.key_lengths_b, s), never) : logits;
}

Tensor attend(const Tensor& q_hat_bthd, const Tensor& k_hat_bshd, const Tensor& v_bshd, const AttentionCall& call,
              MaxLogits* max_logits) {
  const int64_t n_heads = q_hat_bthd.size(2), s = k_hat_bshd.size(1), window = call.form.window;
  // A token that is decoded alone needs no mask: it sees what is left of the keys.
  const bool decoded = q_hat_bthd.size(1) == 1 && call.dropout.rate <= 0.0 && !max_logits;
  if (decoded && call.windowed() && s > window && !call.key_lengths_b.defined())
    return attend(q_hat_bthd, k_hat_bshd.narrow(1, s - window, window), v_bshd.narrow(1, s - window, window), call);
  const Tensor v = repeat_heads(v_bshd, n_heads).transpose(1, 2);
  Tensor out;
  if (!max_logits && is_served_by_sdpa(q_hat_bthd, s, call))
    out = sdpa(scaled_queries(q_hat_bthd, s, call), repeat_heads(k_hat_bshd, n_heads).transpose(1, 2), v, call);
  else if (query_blocks(q_hat_bthd, s, call).size() == 1)
    out = plain_attend(q_hat_bthd, k_hat_bshd, v, call, max_logits);
  else
    out = attend_in_blocks(q_hat_bthd, k_hat_bshd, v, call, max_logits);
  return out.transpose(1, 2);
}

}  // namespace normlab
