#include "normlab/ops/activation.h"

#include "normlab/kernels/column_sums.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/first_derivative.h"
#include "normlab/ops/float_data.h"
#include "normlab/ops/parallel_rows.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedActivation : torch::autograd::Function<FusedActivation> {
  static Tensor forward(AutogradContext* context, const Tensor& x_in, int64_t kind,
                        const std::optional<Tensor>& scale_in) {
    const Tensor x = x_in.contiguous(), scale = scale_in ? scale_in->contiguous() : Tensor();
    const ActivationSpec spec{
        .kind = static_cast<Activation>(kind), .cols = static_cast<size_t>(x.size(-1)), .scale = data(scale)};
    std::vector<int64_t> shape = x.sizes().vec();
    if (is_gated(spec.kind)) shape.back() /= 2;
    const Tensor y = torch::empty(shape, x.options());
    parallel_rows(static_cast<size_t>(x.numel()) / spec.cols, spec.cols, [&](RowRange rows) {
      activation_forward(spec, x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), rows);
    });
    if (!context) return y;
    context->save_for_backward({x, scale});
    context->saved_data["kind"] = kind;
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("activation");
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &scale = saved[1], dy = grads[0].contiguous(), dx = torch::empty_like(x);
    const ActivationSpec spec{.kind = static_cast<Activation>(context->saved_data["kind"].toInt()),
                              .cols = static_cast<size_t>(x.size(-1)),
                              .scale = data(scale)};
    const size_t rows = static_cast<size_t>(x.numel()) / spec.cols, blocks = row_blocks(rows);
    const bool learned = scale.defined() && context->needs_input_grad(1);
    const Tensor partial = learned ? torch::empty({static_cast<int64_t>(blocks), x.size(-1)}, x.options()) : Tensor();
    const ActivationBackward args{.x = x.const_data_ptr<float>(),
                                  .dy = dy.const_data_ptr<float>(),
                                  .dx = dx.mutable_data_ptr<float>(),
                                  .d_scale = learned ? partial.mutable_data_ptr<float>() : nullptr};
    parallel_rows(rows, spec.cols, [&](RowRange range) { activation_backward(spec, args, range); });
    const Tensor d_scale = learned ? torch::empty({x.size(-1)}, x.options()) : Tensor();
    if (learned)
      column_sums(partial.const_data_ptr<float>(), spec.cols, {0, blocks}, spec.cols,
                  d_scale.mutable_data_ptr<float>());
    return {dx, Tensor(), d_scale};
  }
};

}  // namespace

Tensor activate(const Tensor& x_in, Activation kind, bool fused, const Tensor& scale) {
  if (fused) return apply_fused<FusedActivation>(x_in, static_cast<int64_t>(kind), given(scale));
  const Tensor x = scale.defined() ? x_in * scale : x_in;
  switch (kind) {
    case Activation::gelu:
      return torch::gelu(x);
    case Activation::gelu_tanh:
      return torch::gelu(x, "tanh");
    case Activation::relu:
      return torch::relu(x);
    case Activation::swiglu:
    case Activation::geglu:
      break;
  }
  const auto halves = x.chunk(2, -1);
  return halves[0] * (kind == Activation::swiglu ? torch::silu(halves[1]) : torch::gelu(halves[1], "tanh"));
}

}  // namespace normlab
