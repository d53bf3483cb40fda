// bfloat16 for matrix products, float32 for all that is delicate: norms, gains, softmax, loss.
#pragma once

#include <torch/types.h>

namespace normlab {

// PyTorch's autocast on that device: on, or off, while this lives. On: matrix products of float32 tensors are done in
// bfloat16 and give bfloat16.
class Autocast {
 public:
  Autocast(torch::Device device, bool on);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  static bool is_on(torch::Device device);

 private:
  torch::DeviceType device_;
  bool on_ = false, changed_ = false, was_cached_ = false;
  torch::ScalarType was_type_ = torch::kBFloat16;
};

// A type of 16 bits as float32; another type as it is.
torch::Tensor widened(const torch::Tensor& x);

}  // namespace normlab
