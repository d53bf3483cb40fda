#include "normlab/infer/exact_form.h"

#include <cmath>
#include <map>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

// Applies `change` to the rows [h, d, ...] of queries and keys in the map qkv, its bias, and their norms' gains.
template <class Change>
void change_queries_and_keys(Absorbed& model, const Change& change, bool gains_too) {
  const int64_t d = model.config.d_head, rows = (int64_t{model.config.n_heads} + model.config.n_kv_heads) * d;
  for (auto& [name, tensor] : model.tensors) {
    const bool qkv = name.find(".attn.qkv.") != std::string::npos;
    const bool gain =
        name.find(".attn.q_norm.") != std::string::npos || name.find(".attn.k_norm.") != std::string::npos;
    if (!qkv && !(gain && gains_too)) continue;
    const int64_t changed = qkv ? rows : tensor.size(0);
    Tensor heads = tensor.narrow(0, 0, changed);
    std::vector<int64_t> by_head = {changed / d, d}, sizes(heads.sizes().begin(), heads.sizes().end());
    by_head.insert(by_head.end(), sizes.begin() + 1, sizes.end());
    heads = change(heads.reshape(by_head)).reshape(sizes);
    tensor = torch::cat({heads, tensor.narrow(0, changed, tensor.size(0) - changed)});
  }
}

// Pairs of channels (2i, 2i + 1) become (i, i + d/2), or the reverse.
void to_pairs(Absorbed& model, RopePairing wanted) {
  if (model.config.positions != Positions::rope || model.config.rope_pairing == wanted) return;
  const auto reorder = [wanted](const Tensor& heads) {
    if (wanted == RopePairing::interleaved) {
      const std::vector<Tensor> halves = heads.chunk(2, 1);
      return torch::stack(halves, 2).flatten(1, 2);
    }
    const auto even = heads.slice(1, 0, std::nullopt, 2), odd = heads.slice(1, 1, std::nullopt, 2);
    return torch::cat({even, odd}, 1);
  };
  change_queries_and_keys(model, reorder, /*gains_too=*/true);
  model.config.rope_pairing = wanted;
}

// transformers has one epsilon for all norms: c q / sqrt(c^2 m + e) = q / sqrt(m + e / c^2).
void to_one_epsilon(Absorbed& model) {
  NormScheme& s = model.scheme;
  if (s.qk == QkNorm::none || s.qk_eps == s.sublayer_eps) return;
  constexpr double largest = 1 << 20;  // smaller epsilons than that gives are below rounding
  const double factor = std::min(std::sqrt(s.sublayer_eps / s.qk_eps), largest);
  change_queries_and_keys(
      model, [&](const Tensor& heads) { return heads * factor; }, /*gains_too=*/false);
  s.qk_eps = s.sublayer_eps;
}

}  // namespace

// The model with absorbed constants, or as it is when there are none.
Absorbed absorbed_or_same(DecoderLm& model) {
  try {
    return absorb(model);
  } catch (const UsageError&) {
    return {.config = model.config(), .scheme = model.scheme(), .tensors = model.state()};
  }
}

// GPT-2 of transformers always has biases, Qwen3 and Gemma 3 always have gains of q and k.
DecoderLm in_form(Absorbed model, const std::string& type, RopePairing pairing, int vocab_size) {
  if (type == "gpt2") model.config.bias = true;
  if ((type == "qwen3" || type == "gemma3_text") && model.scheme.qk_affine == QkAffine::none)
    model.scheme.qk_affine = QkAffine::shared;
  to_pairs(model, pairing);
  to_one_epsilon(model);
  ModelConfig config = model.config;
  config.kernels = Kernels::best;
  resolve_model(config, model.scheme);
  DecoderLm out(config, model.scheme, vocab_size, 0);
  const std::map<std::string, Tensor> tensors(model.tensors.begin(), model.tensors.end());
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : out.state()) {
    const auto found = tensors.find(name);
    if (found != tensors.end())
      tensor.copy_(found->second);
    else
      tensor.fill_(name.ends_with(".bias") ? 0.0 : 1.0);  // what leaves the logits as they are
  }
  return out;
}

void check_logits(ModelExport& result, const DecoderLm& original, const DecoderLm& written) {
  const torch::NoGradGuard no_grad;
  const int64_t length = std::min(original.config().seq_len, 256);
  const Tensor tokens = torch::empty({1, length}, torch::kInt64);
  for (int64_t i = 0; i < length; ++i)
    tokens[0][i] = static_cast<int64_t>(
        draw_below(stream_key(0x6866), static_cast<uint64_t>(i), static_cast<uint64_t>(original.vocab_size())));
  const Tensor expected = original.logits(tokens, {}), got = written.logits(tokens, {});
  result.largest_logit = expected.abs().max().item<double>();
  result.largest_difference = (expected - got).abs().max().item<double>();
  constexpr double tolerance = 1e-4;  // of float32 sums in another order, with room for deep models
  if (!(result.largest_difference <= tolerance * std::max(1.0, result.largest_logit)))
    throw Error("export", concat("the logits of the ", result.form.type, " checkpoint differ by ",
                                 significant(result.largest_difference, 3), " from the model's (largest ",
                                 significant(result.largest_logit, 3), "); nothing was written."));
}

}  // namespace normlab
