#include "probe/first_bad.h"

#include "base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

// Places in the order of computation: the forward pass counts up, the backward pass comes after it and counts back.
constexpr int64_t places_of_layer = 8, backward_starts = int64_t{1} << 40, parameters_start = int64_t{1} << 50;

std::string kind_of(const Tensor& x) { return x.isnan().any().item<bool>() ? "NaN" : "infinite"; }

}  // namespace

FirstBad::FirstBad(DecoderLm& model)
    : n_layers_(model.config().n_layers), n_heads_(model.config().n_heads), n_kv_heads_(model.config().n_kv_heads) {
  int64_t order = std::numeric_limits<int64_t>::min();
  for (const auto& [name, tensor] : model.parameters()) {
    parameters_.push_back(name);
    check(order++, tensor.detach(), str("the weight ", name));
  }
}

void FirstBad::check(int64_t order, const Tensor& x, const std::string& name) {
  if (!x.defined() || x.isfinite().all().item<bool>()) return;  // a gradient that is 0 may not be there at all
  const std::lock_guard lock(mutex_);
  if (order >= first_) return;
  first_ = order;
  name_ = str(name, " (", kind_of(x), ")");
}

void FirstBad::check_both_ways(int64_t order, const Tensor& x, const std::string& name) {
  check(order, x.detach(), name);
  if (x.requires_grad())
    x.register_hook(
        [=, this](const Tensor& grad) { check(backward_starts - order, grad, str("the gradient of ", name)); });
}

void FirstBad::see(Site site, int layer, const Tensor& x, const Pass&) {
  const torch::NoGradGuard no_grad;
  const int64_t order = layer * places_of_layer;
  switch (site) {
    case Site::stream:
      return check_both_ways(order, x,
                             layer < n_layers_ ? str("the residual stream into layer ", layer)
                                               : "the residual stream after the last layer");
    case Site::attn_out:
      return check_both_ways(order + 4, x, str("the output of attention of layer ", layer));
    case Site::mlp_out:
      return check_both_ways(order + 5, x, str("the output of the MLP of layer ", layer));
    case Site::logits:
      return check_both_ways(order + 6, x, "the logits of the model");
  }
}

AttentionStats* FirstBad::attention(int layer, const Tensor& qkv_bthd, const AttentionForm&, const Pass&) {
  const torch::NoGradGuard no_grad;
  const auto check_heads = [this, layer](bool backward, const Tensor& x) {
    const std::tuple<const char*, int64_t, int64_t> kinds[] = {
        {"queries", 0, n_heads_}, {"keys", n_heads_, n_kv_heads_}, {"values", n_heads_ + n_kv_heads_, n_kv_heads_}};
    int64_t order = layer * places_of_layer + 1;
    for (const auto& [what, first, count] : kinds) {
      for (int64_t h = 0; x.defined() && h < count; ++h)
        check(backward ? backward_starts - order : order, x.select(2, first + h),
              str(backward ? "the gradient of the " : "the ", what, " of layer ", layer, ", head ", h));
      ++order;
    }
  };
  check_heads(false, qkv_bthd.detach());
  if (qkv_bthd.requires_grad()) qkv_bthd.register_hook([=](const Tensor& grad) { check_heads(true, grad); });
  return nullptr;
}

void FirstBad::gradients(const std::vector<std::vector<Tensor>>& parts) {
  const torch::NoGradGuard no_grad;
  for (const auto& part : parts)
    for (size_t i = 0; i < part.size(); ++i)
      check(parameters_start - static_cast<int64_t>(i), part[i], str("the gradient of ", parameters_[i]));
}

}  // namespace normlab
