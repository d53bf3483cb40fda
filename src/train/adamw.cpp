#include "train/adamw.h"

namespace normlab {

using torch::Tensor;

AdamW::AdamW(NamedTensors parameters, AdamWSettings settings) : settings_(settings) {
  groups_[0].weight_decay = settings.weight_decay;
  for (auto& [name, parameter] : parameters) {
    Group& group = groups_[parameter.dim() >= 2 ? 0 : 1];
    group.names.push_back(name);
    group.means.push_back(torch::zeros_like(parameter).detach());
    group.squares.push_back(torch::zeros_like(parameter).detach());
    group.steps.push_back(torch::zeros({}, parameter.options().dtype(torch::kFloat32)).detach());
    group.parameters.push_back(parameter);
  }
}

void AdamW::step(double lr) {
  torch::NoGradGuard no_grad;
  for (Group& group : groups_) {
    if (group.parameters.empty()) continue;
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : group.parameters) gradients.push_back(parameter.grad());
    torch::_foreach_add_(group.steps, 1.0);
    at::_fused_adamw_(group.parameters, gradients, group.means, group.squares, /*max_exp_avg_sqs=*/{}, group.steps, lr,
                      settings_.beta1, settings_.beta2, group.weight_decay, settings_.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
}

NamedTensors AdamW::state() const {
  NamedTensors list;
  for (const Group& group : groups_)
    for (size_t i = 0; i < group.names.size(); ++i) {
      list.emplace_back("mean." + group.names[i], group.means[i]);
      list.emplace_back("square." + group.names[i], group.squares[i]);
      list.emplace_back("step." + group.names[i], group.steps[i]);
    }
  return list;
}

double clip_gradients(const std::vector<Tensor>& gradients, double limit) {
  torch::NoGradGuard no_grad;
  const double norm = torch::stack(torch::_foreach_norm(gradients)).norm().item<double>();
  // torch's own clip_grad_norm_ divides by norm + 1e-6; so do we, to match it bit for bit.
  if (limit > 0.0 && norm > limit) torch::_foreach_mul_(gradients, limit / (norm + 1e-6));
  return norm;
}

}  // namespace normlab
