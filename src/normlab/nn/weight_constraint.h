// What weights are held to after each step: vectors of norm 1, or of norm at most 1.
//
//   unit   w <- w / |w|_2                 nGPT, arXiv 2410.01131: vectors along the embedding dimension
//   ball   w <- w / max(1, |w|_2)         anGPT, arXiv 2505.22014: rows of every matrix
//
// A zero vector stays zero.
#pragma once

#include "normlab/nn/parameter.h"
#include "normlab/norm/scheme.h"

namespace normlab {

struct WeightConstraint {
  Constraint kind = Constraint::none;
  bool columns = false;  // of the columns of the matrix instead of its rows
};

// Of a parameter of that role.
WeightConstraint constraint_of(const NormScheme& scheme, Role role);

// Of all parameters that a model shows.
using ParameterList = std::function<void(const ParameterVisitor&)>;
// Normalised at the start, also where only the ball is asked for afterwards.
void constrain_at_start(const ParameterList& parameters, const NormScheme& scheme);
std::vector<WeightConstraint> constraints_of(const ParameterList& parameters, const NormScheme& scheme);

// On any device and float type; the fused optimiser has a kernel for it.
void constrain(const torch::Tensor& weight, WeightConstraint constraint);

}  // namespace normlab
