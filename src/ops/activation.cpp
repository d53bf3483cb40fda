#include "ops/activation.h"

#include <torch/autograd.h>

#include "ops/parallel_rows.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedActivation : torch::autograd::Function<FusedActivation> {
  static Tensor forward(AutogradContext* context, const Tensor& x_in, int64_t kind) {
    const Tensor x = x_in.contiguous();
    const ActivationSpec spec{.kind = static_cast<Activation>(kind), .cols = static_cast<size_t>(x.size(-1))};
    std::vector<int64_t> shape = x.sizes().vec();
    if (spec.kind == Activation::swiglu) shape.back() /= 2;
    const Tensor y = torch::empty(shape, x.options());
    parallel_rows(static_cast<size_t>(x.numel()) / spec.cols, spec.cols, [&](RowRange rows) {
      activation_forward(spec, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), rows);
    });
    context->save_for_backward({x});
    context->saved_data["kind"] = kind;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const Tensor x = context->get_saved_variables()[0], dy = grads[0].contiguous(), dx = torch::empty_like(x);
    const ActivationSpec spec{.kind = static_cast<Activation>(context->saved_data["kind"].toInt()),
                              .cols = static_cast<size_t>(x.size(-1))};
    const ActivationBackward args{
        .x = x.const_data_ptr<float>(), .dy = dy.const_data_ptr<float>(), .dx = dx.mutable_data_ptr<float>()};
    parallel_rows(static_cast<size_t>(x.numel()) / spec.cols, spec.cols,
                  [&](RowRange rows) { activation_backward(spec, args, rows); });
    return {dx, Tensor()};
  }
};

}  // namespace

Tensor activate(const Tensor& x, Activation kind, bool fused) {
  if (fused) return FusedActivation::apply(x, static_cast<int64_t>(kind));
  switch (kind) {
    case Activation::gelu:
      return torch::gelu(x);
    case Activation::relu:
      return torch::relu(x);
    case Activation::swiglu:
      break;
  }
  const auto halves = x.chunk(2, -1);
  return halves[0] * torch::silu(halves[1]);
}

}  // namespace normlab
