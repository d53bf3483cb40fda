#include "normlab/nn/linear.h"

#include "normlab/ops/lp_norm.h"
#include "normlab/ops/precision.h"

namespace normlab {

Linear::Linear(int64_t in, int64_t out, bool with_bias, bool fused, torch::TensorOptions options)
    : weight(torch::zeros({out, in}, options)),
      maps{out},
      bias(with_bias ? torch::zeros({out}, options) : torch::Tensor()),
      packed(fused ? std::make_shared<PackedWeight>() : nullptr) {}

void Linear::add_sigma() {
  gamma = torch::ones({1}, weight.options());
  u = torch::ones({weight.size(0)}, weight.options());
  v = torch::ones({weight.size(1)}, weight.options());
}

torch::Tensor Linear::sigma() const {
  const Autocast off(weight.device(), false);
  return (u * torch::mv(weight, v)).sum();
}

void Linear::power_iterations(int n) const {
  if (!gamma.defined() || weight.is_meta()) return;
  const torch::NoGradGuard no_grad;
  for (int i = 0; i < n; ++i) {
    u.copy_(lp_normalize(torch::mv(weight, v), 2.0, 1e-12));
    v.copy_(lp_normalize(torch::mv(weight.t(), u), 2.0, 1e-12));
  }
}

void Linear::visit(const std::string& name, Role role, const ParameterVisitor& visitor) {
  visitor(name + ".weight", weight, role);
  if (bias.defined()) visitor(name + ".bias", bias, Role::bias);
  if (!gamma.defined()) return;
  visitor(name + ".gamma", gamma, Role::scale);
  visitor(name + ".u", u, Role::state);
  visitor(name + ".v", v, Role::state);
}

}  // namespace normlab
