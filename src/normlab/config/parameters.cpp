#include "normlab/config/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr std::array<std::string_view, 4> around_the_blocks = {"embedding.weight", "positions.weight", "head.weight",
                                                               "s_z"};

class ParameterList {
 public:
  ParameterList(const ModelConfig& model, const NormScheme& scheme, int vocab_size)
      : c_(model), s_(scheme), vocab_size_(vocab_size) {}

  std::vector<ParameterSpec> all() {
    const bool own_head = !c_.tied_head;
    add("embedding.weight", {vocab_size_, c_.d_model}, Role::embedding);
    if (s_.embedding == EmbeddingNorm::scaled) add("embedding.scale", {1}, Role::scale, std::sqrt(double(c_.d_model)));
    if (c_.positions == Positions::learned) add("positions.weight", {c_.seq_len, c_.d_model}, Role::position);
    if (s_.gain == GainSharing::model && s_.learn_gain) add("qk_gain", {1}, Role::qk_gain, stored_gain(c_, s_));
    for (int layer = 0; layer < c_.n_layers; ++layer) add_block(concat("layers.", layer));
    if (s_.placement != NormPlacement::post) add_norm("final_norm");
    if (own_head) add("head.weight", {vocab_size_, c_.d_model}, Role::weight);
    if (s_.output_scale == OutputScale::s_z) add("s_z", {vocab_size_}, Role::scale, stored_start(c_, s_, 1.0));
    return std::move(list_);
  }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, Role role, std::optional<double> start = {}) {
    list_.push_back({name, std::move(shape), role, start});
  }

  void add_block(const std::string& name) {
    const int64_t heads = c_.n_heads + 2 * c_.n_kv_heads, hidden = (is_gated(c_.activation) ? 2 : 1) * c_.d_ff;
    const bool both = s_.placement == NormPlacement::both;
    add_norm(name + ".attn_norm");
    if (both) add_norm(name + ".attn_branch_norm");
    add_linear(name + ".attn.qkv", heads * c_.d_head, c_.d_model, Role::weight);
    add_linear(name + ".attn.out", c_.d_model, c_.n_heads * c_.d_head, Role::residual_weight);
    add_qk(name + ".attn");
    add_alpha(name + ".alpha_attn");
    add_norm(name + ".mlp_norm");
    if (both) add_norm(name + ".mlp_branch_norm");
    add_linear(name + ".mlp.in", hidden, c_.d_model, Role::weight);
    add_linear(name + ".mlp.out", c_.d_model, c_.d_ff, Role::residual_weight);
    if (s_.map_scale == MapScale::s_uv) add(name + ".mlp.s_uv", {hidden}, Role::scale, 1.0);
    add_alpha(name + ".alpha_mlp");
  }

  void add_norm(const std::string& name) {
    const SublayerNorm kind = s_.sublayer;
    if (kind == SublayerNorm::scale)
      add(name + ".weight", {1}, Role::norm_gain, std::sqrt(double(c_.d_model)));
    else if (kind != SublayerNorm::none)
      add(name + ".weight", {c_.d_model}, Role::norm_gain, 1.0);
    if (kind == SublayerNorm::dyt || (kind == SublayerNorm::layer && c_.bias))
      add(name + ".bias", {c_.d_model}, Role::norm_bias, 0.0);
    if (kind == SublayerNorm::dyt) add(name + ".slope", {1}, Role::scale, 0.5);
  }

  void add_linear(const std::string& name, int64_t out, int64_t in, Role role) {
    add(name + ".weight", {out, in}, role);
    if (c_.bias) add(name + ".bias", {out}, Role::bias, 0.0);
    if (s_.sigma_reparam) add(name + ".gamma", {1}, Role::scale);  // sigma(W) of the weights drawn
  }

  void add_qk(const std::string& name) {
    for (const auto& [part, heads] : {std::pair(".q_norm", c_.n_heads), std::pair(".k_norm", c_.n_kv_heads)}) {
      const int64_t size = affine_size(c_, s_, heads);
      if (size == 0) continue;
      add(name + part + ".weight", {size}, Role::qk_gain, 1.0);
      if (c_.bias && s_.qk == QkNorm::layer) add(name + part + ".bias", {size}, Role::norm_bias, 0.0);
    }
    if (const int64_t size = gain_size(c_, s_); size > 0 && s_.learn_gain)
      add(name + ".qk_gain", {size}, Role::qk_gain, stored_gain(c_, s_));
    if (s_.learn_p)
      add(name + ".qk_p", {s_.p_sharing == PSharing::head ? c_.n_heads : 1}, Role::qk_p, initial_raw_p(s_));
  }

  void add_alpha(const std::string& name) {
    if (s_.residual == Residual::add) return;
    add(name, {alpha_size(c_, s_)}, Role::scale, stored_start(c_, s_, initial_alpha(c_, s_)));
  }

  const ModelConfig& c_;
  const NormScheme& s_;
  int vocab_size_;
  std::vector<ParameterSpec> list_;
};

}  // namespace

int64_t ParameterSpec::size() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::vector<ParameterSpec> parameters_of(const ModelConfig& model, const NormScheme& scheme, int vocab_size) {
  return ParameterList(model, scheme, vocab_size).all();
}

ParameterCount count_parameters(const ModelConfig& model, const NormScheme& scheme, int vocab_size) {
  ParameterCount count;
  for (const ParameterSpec& each : parameters_of(model, scheme, vocab_size)) {
    count.total += each.size();
    if (std::find(around_the_blocks.begin(), around_the_blocks.end(), each.name) == around_the_blocks.end())
      count.body += each.size();
  }
  return count;
}

int64_t gain_size(const ModelConfig& model, const NormScheme& scheme) {
  switch (scheme.gain) {
    case GainSharing::layer:
      return 1;
    case GainSharing::head:
      return model.n_heads;
    case GainSharing::channel:
      return int64_t{model.n_heads} * model.d_head;
    case GainSharing::none:
    case GainSharing::model:
      break;
  }
  return 0;
}

int64_t affine_size(const ModelConfig& model, const NormScheme& scheme, int heads) {
  if (scheme.qk_affine == QkAffine::none) return 0;
  return scheme.qk_affine == QkAffine::own ? int64_t{heads} * model.d_head : model.d_head;
}

int64_t alpha_size(const ModelConfig& model, const NormScheme& scheme) {
  return scheme.alpha_sharing == AlphaSharing::channel ? model.d_model : 1;
}

double initial_gain(const ModelConfig& model, const NormScheme& scheme) {
  return initial_gain(scheme, {model.d_head, model.n_heads, model.seq_len});
}

double initial_raw_p(const NormScheme& scheme) {
  const double above = scheme.p - 1.0;  // softplus of the start
  return above + std::log(-std::expm1(-above));
}

double stored_start(const ModelConfig& model, const NormScheme& scheme, double init) {
  return value_of(scheme.stored_scale, {model.d_head, model.d_model, init});
}

double stored_gain(const ModelConfig& model, const NormScheme& scheme) {
  const double init = initial_gain(model, scheme);
  return scheme.gain_form == GainForm::exp ? std::log(init) : stored_start(model, scheme, init);
}

double initial_alpha(const ModelConfig& model, const NormScheme& scheme) {
  return value_of(scheme.alpha_init, {.n_layers = model.n_layers});
}

}  // namespace normlab
