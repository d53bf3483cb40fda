// A learnable scale that is stored in another size than it is used, so that Adam's steps suit it.
//
//   plain   used = stored init / stored_scale,  stored starts at stored_scale      nGPT, arXiv 2410.01131
//   exp     used = exp(min(stored, ln max)),    stored starts at ln init           Swin V2, arXiv 2111.09883
#pragma once

#include <limits>

#include "normlab/nn/parameter.h"
#include "normlab/norm/scheme.h"

namespace normlab {

struct ScaledParameter {
  torch::Tensor stored;  // undefined: there is no such parameter
  double ratio = 1.0;    // init / stored_scale
  GainForm form = GainForm::plain;
  double max = std::numeric_limits<double>::infinity();

  bool defined() const { return stored.defined(); }
  torch::Tensor used() const;
};

struct ScaledInit {
  double init = 1.0, stored_scale = 1.0;
};
ScaledParameter scaled_parameter(int64_t size, ScaledInit values, torch::TensorOptions options);
ScaledParameter exp_parameter(int64_t size, double init, double max, torch::TensorOptions options);

}  // namespace normlab
