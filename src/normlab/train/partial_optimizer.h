// An optimiser that trains some of the parameters; the others keep their values.
#pragma once

#include <memory>
#include <vector>

#include "normlab/config/config.h"
#include "normlab/train/optimizer.h"

namespace normlab {

// Whether train.only includes parameters of this role.
bool is_trained(TrainedPart part, Role role);

class PartialOptimizer : public Optimizer {
 public:
  // `trained`: for each parameter of the model, whether it is one of the inner optimiser's.
  PartialOptimizer(std::vector<bool> trained, std::unique_ptr<Optimizer> inner)
      : trained_(std::move(trained)), inner_(std::move(inner)) {}

  NamedTensors state() const override { return inner_->state(); }

 private:
  double make_step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss) override;

  std::vector<bool> trained_;
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace normlab
