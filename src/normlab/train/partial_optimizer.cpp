#include "normlab/train/partial_optimizer.h"

namespace normlab {

bool is_trained(TrainedPart part, Role role) {
  const bool qk_gain = role == Role::qk_gain || role == Role::qk_p;
  switch (part) {
    case TrainedPart::all:
      return true;
    case TrainedPart::gains:
      return qk_gain || role == Role::norm_gain || role == Role::norm_bias || role == Role::scale;
    case TrainedPart::qk_gains:
      return qk_gain;
    case TrainedPart::embeddings:
      return role == Role::embedding || role == Role::language || role == Role::position;
    case TrainedPart::weights:
      break;
  }
  return role == Role::weight || role == Role::residual_weight || role == Role::bias;
}

double PartialOptimizer::make_step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss) {
  std::vector<Gradients> own;
  for (const Gradients& part : parts) {
    own.emplace_back();
    for (size_t i = 0; i < part.size(); ++i)
      if (trained_[i]) own.back().push_back(part[i]);
  }
  return inner_->step(own, lr, clip, loss);
}

}  // namespace normlab
