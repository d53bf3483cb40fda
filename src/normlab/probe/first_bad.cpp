#include "normlab/probe/first_bad.h"

#include <array>

#include "normlab/base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

// Places in the order of computation: the forward pass counts up, the backward pass comes after it and counts back.
constexpr int64_t places_of_layer = 8, backward_starts = int64_t{1} << 40, parameters_start = int64_t{1} << 50;

std::string kind_of(const Tensor& x) { return x.isnan().any().item<bool>() ? "NaN" : "infinite"; }

}  // namespace

FirstBad::FirstBad(DecoderLm& model) : FirstBad(ModelPlaces(model), model.parameters()) {}

FirstBad::FirstBad(EncoderDecoder& model) : FirstBad(ModelPlaces(model), model.parameters()) {}

FirstBad::FirstBad(const ModelPlaces& places, const NamedTensors& parameters) : places_(places) {
  int64_t order = std::numeric_limits<int64_t>::min();
  for (const auto& [name, tensor] : parameters) {
    parameters_.push_back(name);
    check(order++, tensor.detach(), concat("the weight ", name));
  }
}

int64_t FirstBad::order_of(Place place) const { return static_cast<int64_t>(places_.number(place)) * places_of_layer; }

void FirstBad::check(int64_t order, const Tensor& x, const std::string& name) {
  if (!x.defined() || x.isfinite().all().item<bool>()) return;  // a gradient that is 0 may not be there at all
  const std::lock_guard lock(mutex_);
  if (order >= first_) return;
  first_ = order;
  name_ = concat(name, " (", kind_of(x), ")");
}

void FirstBad::check_both_ways(int64_t order, const Tensor& x, const std::string& name) {
  check(order, x.detach(), name);
  if (x.requires_grad())
    x.register_hook(
        [=, this](const Tensor& grad) { check(backward_starts - order, grad, concat("the gradient of ", name)); });
}

void FirstBad::see(Site site, Place place, const Tensor& x, const Pass&) {
  const torch::NoGradGuard no_grad;
  const int64_t order = order_of(place);
  const char* stack = place.stack == Stack::encoder ? "encoder layer" : "layer";
  switch (site) {
    case Site::stream:
      return check_both_ways(order, x,
                             places_.has_attention(place) ? concat("the residual stream into ", describe(place))
                                                          : concat("the residual stream after the last ", stack));
    case Site::attn_out:
      return check_both_ways(order + 4, x, concat("the output of attention of ", describe(place)));
    case Site::mlp_out:  // after the cross-attention of a decoder layer
      return check_both_ways(order_of({place.stack, place.layer + 1}) - 1, x,
                             concat("the output of the MLP of ", describe(place)));
    case Site::logits:
      return check_both_ways(order + 6, x, "the logits of the model");
  }
}

AttentionStats* FirstBad::attention(Place place, const QkvParts& qkv, const AttentionCall&, const AttentionWeights&,
                                    const Pass&) {
  const torch::NoGradGuard no_grad;
  const auto check_heads = [this, place](bool backward, const Tensor& x, std::array<int64_t, 3> heads) {
    constexpr const char* kinds[] = {"queries", "keys", "values"};
    int64_t first = 0;
    for (size_t kind = 0; kind < heads.size() && x.defined(); first += heads[kind++]) {
      const int64_t order = order_of(place) + 1 + static_cast<int64_t>(kind);
      for (int64_t h = 0; h < heads[kind]; ++h)
        check(backward ? backward_starts - order : order, x.select(2, first + h),
              concat(backward ? "the gradient of the " : "the ", kinds[kind], " of ", describe(place), ", head ", h));
    }
  };
  for (const QkvPart& each : qkv) {
    const std::array<int64_t, 3> heads = {each.queries, each.keys, each.values};
    check_heads(false, each.x_bthd.detach(), heads);
    if (each.x_bthd.requires_grad())
      each.x_bthd.register_hook([=](const Tensor& grad) { check_heads(true, grad, heads); });
  }
  return nullptr;
}

void FirstBad::gradients(const std::vector<std::vector<Tensor>>& parts) {
  const torch::NoGradGuard no_grad;
  for (const auto& part : parts)
    for (size_t i = 0; i < part.size(); ++i)
      check(parameters_start - static_cast<int64_t>(i), part[i], concat("the gradient of ", parameters_[i]));
}

}  // namespace normlab
