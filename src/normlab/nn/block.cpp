#include "normlab/nn/block.h"

#include <cmath>
#include <optional>

#include "normlab/nn/observer.h"
#include "normlab/ops/checkpoint.h"

namespace normlab {
namespace {

using torch::Tensor;

// x + branch(norm(x)), where the next norm will do the add, norm(x + branch(x)), x + norm(branch(x)), both, or a lerp.
template <class Branch>
void add_branch(Stream& stream, const StreamNorm& norm, const StreamNorm& branch_norm, const LerpResidual& lerp,
                NormPlacement placement, const Branch& branch) {
  const auto add_normed = [&stream](const StreamNorm& after) {
    Stream out{.x = stream.branch};
    stream = {.x = stream.x + dropout(after(out), stream.dropout)};
  };
  if (lerp.defined()) {
    branch(stream.x);
    stream = {.x = lerp(stream)};
    return;
  }
  switch (placement) {
    case NormPlacement::pre:
      branch(norm(stream));
      return;
    case NormPlacement::post:
      branch(stream.x);
      stream = {.x = norm(stream)};
      return;
    case NormPlacement::branch:
      branch(stream.x);
      return add_normed(norm);
    case NormPlacement::both:
      branch(norm(stream));
      return add_normed(branch_norm);
  }
}

}  // namespace

Block::Block(const ModelConfig& config, const NormScheme& scheme, int layer, torch::TensorOptions options,
             bool with_cross)
    : layer_(layer),
      dropout_(config.dropout),
      mlp_dropout_(config.mlp_dropout),
      with_cross_(with_cross),
      checkpoint_(config.checkpoint_activations),
      placement_(scheme.placement),
      attn_norm_(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options),
      mlp_norm_(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options),
      alpha_attn_(config, scheme, layer == 0, options),
      alpha_mlp_(config, scheme, false, options),
      attn_(config, scheme, layer, options),
      mlp_(config, scheme, options) {
  if (with_cross_) {
    cross_norm_ = StreamNorm(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options);
    cross_ = Attention(config, scheme, layer, options, AttentionKind::cross);
  }
  if (placement_ == NormPlacement::both)
    for (StreamNorm* norm : {&attn_branch_norm_, &cross_branch_norm_, &mlp_branch_norm_})
      *norm = StreamNorm(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options);
  if (scheme.sublayer_scale == DepthScale::inverse_sqrt_layer)
    for (StreamNorm* norm : {&attn_norm_, &cross_norm_, &mlp_norm_}) norm->multiply_by(1.0 / std::sqrt(layer + 1.0));
}

void Block::operator()(Stream& stream, const Pass& pass, const Tensor& model_gain, const RopeTable* rope,
                       KvCache* cache) const {
  const bool for_backward = stream.x.requires_grad() && !cache && !pass.beams;
  if (checkpoint_ && for_backward)
    run_twice(stream, pass, model_gain, rope);
  else
    run(stream, pass, model_gain, rope, cache);
}

// Observers and sums of gradients belong to the second time, whose tensors have gradients. The pass only points to the
// encoder's output and the model to its rotations, which may be gone by then: both are held here.
void Block::run_twice(Stream& stream, const Pass& pass, const Tensor& model_gain, const RopeTable* rope) const {
  const Tensor memory = with_cross_ ? pass.memory->x_bsc : Tensor();
  const Tensor lengths = with_cross_ ? pass.memory->lengths_b : Tensor();
  std::vector<Tensor> inputs;
  for (const Tensor& each : {stream.x, stream.branch, model_gain, memory})
    if (each.defined()) inputs.push_back(each);
  const bool has_branch = stream.branch.defined(), has_gain = model_gain.defined();
  const auto after = std::make_shared<Dropout>();
  const auto compute = [=, block = *this, before = stream.dropout, table = rope ? std::optional(*rope) : std::nullopt](
                           const std::vector<Tensor>& in, bool again) {
    auto next = in.begin();
    Stream own{.x = *next++, .branch = has_branch ? *next++ : Tensor(), .dropout = before};
    const Tensor gain = has_gain ? *next++ : Tensor();
    const Memory own_memory{block.with_cross_ ? *next : Tensor(), lengths};
    Pass own_pass = pass;
    own_pass.memory = block.with_cross_ ? &own_memory : nullptr;
    if (!again) own_pass.observer = nullptr, own_pass.sink = nullptr;
    block.run(own, own_pass, gain, table ? &*table : nullptr, /*cache=*/nullptr);
    *after = own.dropout;
    return own.branch.defined() ? std::vector<Tensor>{own.x, own.branch} : std::vector<Tensor>{own.x};
  };
  const std::vector<Tensor> out = checkpoint(inputs, compute);
  stream = {.x = out[0], .branch = out.size() > 1 ? out[1] : Tensor(), .dropout = *after};
}

void Block::run(Stream& stream, const Pass& pass, const Tensor& model_gain, const RopeTable* rope,
                KvCache* cache) const {
  const int64_t t = stream.x.size(1);
  add_branch(stream, attn_norm_, attn_branch_norm_, alpha_attn_, placement_, [&](const Tensor& in) {
    if (pass.observer) pass.observer->see(Site::stream, {pass.stack, layer_}, stream.x, pass);
    stream.branch = attn_(in, pass, model_gain, rope, cache);
    if (pass.observer) pass.observer->see(Site::attn_out, {pass.stack, layer_}, stream.branch, pass);
    stream.dropout = pass.dropout(dropout_, layer_, DropoutSite::attn_branch, t);
  });
  if (with_cross_)
    add_branch(stream, cross_norm_, cross_branch_norm_, LerpResidual(), placement_, [&](const Tensor& in) {
      stream.branch = cross_(in, pass, model_gain, /*rope=*/nullptr);
      if (pass.observer) pass.observer->see(Site::attn_out, {Stack::cross, layer_}, stream.branch, pass);
      stream.dropout = pass.dropout(dropout_, layer_, DropoutSite::cross_branch, t);
    });
  add_branch(stream, mlp_norm_, mlp_branch_norm_, alpha_mlp_, placement_, [&](const Tensor& in) {
    stream.branch = mlp_(in, pass.dropout(mlp_dropout_, layer_, DropoutSite::mlp_hidden, t), pass.sink);
    if (pass.observer) pass.observer->see(Site::mlp_out, {pass.stack, layer_}, stream.branch, pass);
    stream.dropout = pass.dropout(dropout_, layer_, DropoutSite::mlp_branch, t);
  });
}

void Block::visit(const std::string& name, const ParameterVisitor& visitor) {
  attn_norm_.visit(name + ".attn_norm", visitor);
  attn_branch_norm_.visit(name + ".attn_branch_norm", visitor);
  attn_.visit(name + ".attn", visitor);
  alpha_attn_.visit(name + ".alpha_attn", visitor);
  if (with_cross_) {
    cross_norm_.visit(name + ".cross_norm", visitor);
    cross_branch_norm_.visit(name + ".cross_branch_norm", visitor);
    cross_.visit(name + ".cross", visitor);
  }
  mlp_norm_.visit(name + ".mlp_norm", visitor);
  mlp_branch_norm_.visit(name + ".mlp_branch_norm", visitor);
  mlp_.visit(name + ".mlp", visitor);
  alpha_mlp_.visit(name + ".alpha_mlp", visitor);
}

void Block::visit_linears(const LinearVisitor& visitor) const {
  attn_.visit_linears(visitor);
  if (with_cross_) cross_.visit_linears(visitor);
  mlp_.visit_linears(visitor);
}

void Block::start() {
  constexpr int iterations = 100;
  visit_linears([](const Linear& linear) {
    linear.power_iterations(iterations);
    if (linear.gamma.defined() && !linear.gamma.is_meta()) linear.gamma.fill_(linear.sigma());
  });
}

void Block::after_step(Stack stack, LogitMaxima& maxima) {
  if (const MaxLogits* largest = maxima.at({stack, layer_})) attn_.clip_logits(*largest);
  if (const MaxLogits* largest = with_cross_ ? maxima.at({Stack::cross, layer_}) : nullptr)
    cross_.clip_logits(*largest);
  visit_linears([](const Linear& linear) { linear.power_iterations(1); });
}

}  // namespace normlab
