#include "normlab/ops/linear.h"

#include <algorithm>

#include "normlab/kernels/column_sums.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/first_derivative.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t fewest_rows_to_pack_for = 16;
constexpr int64_t most_packed_at_once = 1 << 22;  // entries, without gradients

// What backward needs besides x and W.
struct LinearCall : torch::CustomClassHolder {
  std::shared_ptr<const PackedWeight> packed;
  Tensor sum;                    // of dW, in the sink; undefined: dW goes to autograd
  GradientSink* sink = nullptr;  // is told that dW is computed
  const c10::TensorImpl* weight = nullptr;
};

MatrixSize size_of(const Tensor& x, const Tensor& weight) {
  return {.rows = x.numel() / weight.size(1), .in = weight.size(1), .out = weight.size(0)};
}

struct FusedLinear : torch::autograd::Function<FusedLinear> {
  static Tensor forward(AutogradContext* context, const Tensor& x_in, const Tensor& weight,
                        const std::optional<Tensor>& bias, const c10::intrusive_ptr<LinearCall>& call) {
    const Tensor x = x_in.contiguous();
    const MatrixSize size = size_of(x, weight);
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = size.out;
    const Tensor y = torch::empty(shape, x.options());
    auto* const to = y.mutable_data_ptr<float>();
    for (int64_t row = 0; bias && row < size.rows; ++row)  // the product is added to it
      std::copy_n(bias->const_data_ptr<float>(), size.out, to + row * size.out);
    product_forward(size, x.const_data_ptr<float>(), *call->packed, bias.has_value(), to);
    if (!context) return y;
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();  // an absent input has no index in needs_input_grad()
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("linear");
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], dy = grads[0].contiguous();
    const auto call = c10::static_intrusive_pointer_cast<LinearCall>(context->saved_data["call"].toCapsule());
    const MatrixSize size = size_of(x, weight);
    const float* from = dy.const_data_ptr<float>();
    variable_list gradients(4);
    if (context->needs_input_grad(0)) {
      gradients[0] = torch::empty_like(x);
      product_backward(size, from, *call->packed, gradients[0].mutable_data_ptr<float>());
    }
    if (context->needs_input_grad(1)) {
      const bool add = call->sum.defined();
      if (!add) gradients[1] = torch::empty_like(weight);
      product_weight(size, x.const_data_ptr<float>(), from, add,
                     (add ? call->sum : gradients[1]).mutable_data_ptr<float>());
      if (call->sink) call->sink->computed(call->weight);
    }
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) {
      gradients[2] = torch::empty({size.out}, dy.options());
      const auto rows = static_cast<size_t>(size.rows), out = static_cast<size_t>(size.out);
      column_sums(from, out, {0, rows}, out, gradients[2].mutable_data_ptr<float>());
    }
    return gradients;
  }
};

// For some rows of W after others, so that no copy of all of them is needed at once.
Tensor linear_in_parts(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const std::shared_ptr<PackedWeight>& packed) {
  constexpr int64_t multiple = 64;  // of the rows that the inner loops work on
  const int64_t rows = std::max(multiple, most_packed_at_once / weight.size(1) / multiple * multiple);
  std::vector<Tensor> parts;
  for (int64_t first = 0; first < weight.size(0); first += rows) {
    const int64_t count = std::min(rows, weight.size(0) - first);
    const Tensor part = bias.defined() ? bias.narrow(0, first, count) : Tensor();
    parts.push_back(fused_linear(x, weight.narrow(0, first, count), part, packed, nullptr));
  }
  return torch::cat(parts, -1);
}

}  // namespace

Tensor fused_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const std::shared_ptr<PackedWeight>& packed, GradientSink* sink) {
  // A few rows, as in decoding, are not worth a copy of W.
  if (!packed->holds(weight) && x.numel() / weight.size(1) < fewest_rows_to_pack_for)
    return torch::linear(x, weight, bias);
  auto call = c10::make_intrusive<LinearCall>();
  call->packed = packed;
  if (sink) {
    call->sum = sink->find(weight);
    call->sink = sink;
    call->weight = weight.unsafeGetTensorImpl();
  }
  if (!packed->holds(weight)) {
    const bool backward = torch::GradMode::is_enabled();
    if (!backward && weight.numel() > most_packed_at_once) return linear_in_parts(x, weight, bias, packed);
    auto own = std::make_shared<PackedWeight>();
    own->pack(weight, backward);
    call->packed = own;
  }
  return apply_fused<FusedLinear>(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, call);
}

}  // namespace normlab
