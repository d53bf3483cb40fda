// What every optimiser is given and does: an update of the parameters from the gradients of a batch's parts.
#pragma once

#include <string>
#include <vector>

#include "normlab/nn/weight_constraint.h"

namespace normlab {

struct Parameter {
  std::string name;
  torch::Tensor tensor;
  Role role = Role::weight;
  WeightConstraint constraint = {};
  // Of a matrix of a block: the rows of each linear map stacked in it, one for a map alone, three for q, k and v. Empty
  // for everything else, also for embeddings and the head.
  std::vector<int64_t> maps = {};
  bool owned = true;  // false: another rank updates it and has its state
};

// The gradients of all parameters, in their order.
using Gradients = std::vector<torch::Tensor>;

// A loss that is still on its device. It is read together with the norm of the gradients: the host waits once a step.
struct DeviceLoss {
  torch::Tensor on_device;
  double value = 0.0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update from the sum of the parts' gradients, scaled down to the norm `clip` (> 0) where theirs is larger, and
  // the constraints on the weights after it. Gives the norm before clipping; where it or the loss is not finite,
  // nothing is updated. The gradients are used up.
  double step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss = nullptr) {
    return make_step(parts, lr, clip, loss);
  }
  // What a resumed run needs, under the parameters' names, sharing storage with the optimiser; undefined where another
  // rank has it.
  virtual NamedTensors state() const = 0;

 private:
  virtual double make_step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss) = 0;
};

// Scalars of a device, in one copy.
std::vector<double> read_together(const std::vector<torch::Tensor>& scalars);

// What gradients of that norm are multiplied by. torch's clip_grad_norm_ divides by norm + 1e-6; so do we, to match it.
inline double clip_factor(double norm, double clip) { return clip > 0.0 && norm > clip ? clip / (norm + 1e-6) : 1.0; }

}  // namespace normlab
