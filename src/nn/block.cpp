#include "nn/block.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int attn_branch_site = 1, mlp_branch_site = 2, mlp_hidden_site = 4, cross_branch_site = 6;  // of dropout

// x + branch(norm(x)), where the next norm will do the add, or norm(x + branch(x)).
template <class Branch>
void add_branch(Stream& stream, const StreamNorm& norm, NormPlacement placement, const Branch& branch) {
  switch (placement) {
    case NormPlacement::pre:
      branch(norm(stream));
      return;
    case NormPlacement::post:
      branch(stream.x);
      stream = {.x = norm(stream)};
      return;
  }
}

}  // namespace

Block::Block(const ModelConfig& config, const NormScheme& scheme, int layer, torch::TensorOptions options,
             bool with_cross)
    : layer_(layer),
      dropout_(config.dropout),
      mlp_dropout_(config.mlp_dropout),
      with_cross_(with_cross),
      placement_(scheme.placement),
      attn_norm_(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options),
      mlp_norm_(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options),
      attn_(config, scheme, layer, options),
      mlp_(config, options) {
  if (!with_cross_) return;
  cross_norm_ = StreamNorm(scheme, config.d_model, config.bias, config.kernels == Kernels::fused, options);
  cross_ = Attention(config, scheme, layer, options, AttentionKind::cross);
}

void Block::operator()(Stream& stream, const Pass& pass, const Tensor& model_gain, const RopeTable* rope,
                       KvCache* cache) const {
  const int64_t t = stream.x.size(1);
  add_branch(stream, attn_norm_, placement_, [&](const Tensor& in) {
    stream.branch = attn_(in, pass, model_gain, rope, cache);
    stream.dropout = pass.dropout(dropout_, layer_, attn_branch_site, t);
  });
  if (with_cross_)
    add_branch(stream, cross_norm_, placement_, [&](const Tensor& in) {
      stream.branch = cross_(in, pass, model_gain, /*rope=*/nullptr);
      stream.dropout = pass.dropout(dropout_, layer_, cross_branch_site, t);
    });
  add_branch(stream, mlp_norm_, placement_, [&](const Tensor& in) {
    stream.branch = mlp_(in, pass.dropout(mlp_dropout_, layer_, mlp_hidden_site, t));
    stream.dropout = pass.dropout(dropout_, layer_, mlp_branch_site, t);
  });
}

void Block::visit(const std::string& name, const ParameterVisitor& visitor) {
  attn_norm_.visit(name + ".attn_norm", visitor);
  attn_.visit(name + ".attn", visitor);
  if (with_cross_) {
    cross_norm_.visit(name + ".cross_norm", visitor);
    cross_.visit(name + ".cross", visitor);
  }
  mlp_norm_.visit(name + ".mlp_norm", visitor);
  mlp_.visit(name + ".mlp", visitor);
}

void Block::visit_linears(const LinearVisitor& visitor) const {
  attn_.visit_linears(visitor);
  if (with_cross_) cross_.visit_linears(visitor);
  mlp_.visit_linears(visitor);
}

}  // namespace normlab
