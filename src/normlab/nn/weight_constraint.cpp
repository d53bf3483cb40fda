#include "normlab/nn/weight_constraint.h"

namespace normlab {

WeightConstraint constraint_of(const NormScheme& scheme, Role role) {
  switch (role) {
    case Role::embedding:
    case Role::weight:
      return {.kind = scheme.constraint};
    case Role::residual_weight:  // [d_model, in]: its columns lie along the embedding dimension
      return {.kind = scheme.constraint, .columns = scheme.constraint_axis == ConstraintAxis::embedding};
    default:
      return {};
  }
}

void constrain_at_start(const ParameterList& parameters, const NormScheme& scheme) {
  parameters([&](const std::string&, torch::Tensor& tensor, Role role) {
    WeightConstraint constraint = constraint_of(scheme, role);
    if (constraint.kind == Constraint::ball) constraint.kind = Constraint::unit;
    constrain(tensor, constraint);
  });
}

std::vector<WeightConstraint> constraints_of(const ParameterList& parameters, const NormScheme& scheme) {
  std::vector<WeightConstraint> list;
  parameters([&](const std::string&, torch::Tensor&, Role role) {
    if (role != Role::state) list.push_back(constraint_of(scheme, role));
  });
  return list;
}

void constrain(const torch::Tensor& weight, WeightConstraint constraint) {
  if (constraint.kind == Constraint::none || weight.is_meta()) return;
  const torch::NoGradGuard no_grad;
  torch::Tensor norm = weight.norm(2, constraint.columns ? 0 : 1, /*keepdim=*/true);
  norm = constraint.kind == Constraint::ball ? norm.clamp_min(1.0) : norm + norm.eq(0);
  weight.div_(norm);
}

}  // namespace normlab
