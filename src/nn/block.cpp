#include "nn/block.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int attn_branch_site = 1, mlp_branch_site = 2;  // of dropout in a layer

// x + branch(norm(x)), or norm(x + branch(x)).
template <class Branch>
Tensor add_branch(const Tensor& x, const StreamNorm& norm, NormPlacement placement, const Branch& branch) {
  switch (placement) {
    case NormPlacement::pre:
      return x + branch(norm(x));
    case NormPlacement::post:
      break;
  }
  return norm(x + branch(x));
}

}  // namespace

Block::Block(const ModelConfig& config, const NormScheme& scheme, int layer, torch::TensorOptions options)
    : layer_(layer),
      dropout_(config.dropout),
      placement_(scheme.placement),
      attn_norm_(scheme, config.d_model, config.bias, options),
      mlp_norm_(scheme, config.d_model, config.bias, options),
      attn_(config, scheme, layer, options),
      mlp_(config, options) {}

Tensor Block::operator()(const Tensor& x_btc, const Pass& pass, const Tensor& model_gain, const RopeTable* rope,
                         KvCache* cache) const {
  const int64_t t = x_btc.size(1);
  const Tensor x = add_branch(x_btc, attn_norm_, placement_, [&](const Tensor& in) {
    return dropout(attn_(in, pass, model_gain, rope, cache), pass.dropout(dropout_, layer_, attn_branch_site, t));
  });
  return add_branch(x, mlp_norm_, placement_, [&](const Tensor& in) {
    return dropout(mlp_(in), pass.dropout(dropout_, layer_, mlp_branch_site, t));
  });
}

void Block::visit(const std::string& name, const ParameterVisitor& visitor) {
  attn_norm_.visit(name + ".attn_norm", visitor);
  attn_.visit(name + ".attn", visitor);
  mlp_norm_.visit(name + ".mlp_norm", visitor);
  mlp_.visit(name + ".mlp", visitor);
}

}  // namespace normlab
