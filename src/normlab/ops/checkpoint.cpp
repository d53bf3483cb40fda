#include "normlab/ops/checkpoint.h"

#include <torch/autograd.h>

#include "normlab/ops/first_derivative.h"
#include "normlab/ops/precision.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Computation : torch::CustomClassHolder {
  Recomputed compute;
  bool autocast = false;  // of the first time
};

struct ComputeAgain : torch::autograd::Function<ComputeAgain> {
  static variable_list forward(AutogradContext* context, at::TensorList inputs,
                               const c10::intrusive_ptr<Computation>& of) {
    context->save_for_backward(inputs.vec());
    context->saved_data["computation"] = c10::IValue::make_capsule(of);
    context->set_materialize_grads(false);
    return of->compute(inputs.vec(), /*again=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("checkpoint");
    const auto of = c10::static_intrusive_pointer_cast<Computation>(context->saved_data["computation"].toCapsule());
    variable_list inputs = context->get_saved_variables();
    for (Tensor& input : inputs) input = input.detach().requires_grad_(input.requires_grad());
    variable_list outputs, wanted, gradients_of_wanted;
    {
      const torch::AutoGradMode with_gradients(true);
      const Autocast as_before(inputs.front().device(), of->autocast);
      outputs = of->compute(inputs, /*again=*/true);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!grads[i].defined() || !outputs[i].requires_grad()) continue;
      wanted.push_back(outputs[i]);
      gradients_of_wanted.push_back(grads[i]);
    }
    if (!wanted.empty()) torch::autograd::backward(wanted, gradients_of_wanted);
    variable_list gradients;
    for (const Tensor& input : inputs) gradients.push_back(input.grad());
    gradients.emplace_back();  // of the computation
    return gradients;
  }
};

}  // namespace

std::vector<Tensor> checkpoint(const std::vector<Tensor>& inputs, Recomputed compute) {
  auto of = c10::make_intrusive<Computation>();
  of->compute = std::move(compute);
  of->autocast = Autocast::is_on(inputs.front().device());
  return ComputeAgain::apply(at::TensorList(inputs), of);
}

}  // namespace normlab
