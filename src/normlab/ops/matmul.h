// Products of rows with a weight matrix W [out, in]: y = x W^T, dx = dy W, dW += dy^T x, all row-major float32.
// All are ours, the first two with W packed once per step; but with AVX-512 the last is MKL's where libtorch has it,
// which is faster there.
#pragma once

#include <torch/types.h>

#include <memory>

namespace normlab {

struct MatrixSize {
  int64_t rows = 0, in = 0, out = 0;
};

// W in the layout of the products' inner loops. Otherwise every product would make this copy again; made once per step,
// it serves all parts of the batch and all threads.
class PackedWeight {
 public:
  void pack(const torch::Tensor& weight, bool for_backward = true);
  // Whether this is a copy of W as it is now.
  bool holds(const torch::Tensor& weight) const {
    return data_ == weight.const_data_ptr() && version_ == weight._version();
  }
  const float* forward() const { return forward_.const_data_ptr<float>(); }
  // Only where it was packed for it.
  const float* backward() const { return backward_.const_data_ptr<float>(); }

 private:
  const void* data_ = nullptr;
  uint32_t version_ = 0;
  torch::Tensor forward_, backward_;
};

// y = x W^T, or += with `add`, and dx = dy W, from a packed W.
void product_forward(MatrixSize size, const float* x, const PackedWeight& weight, bool add, float* y);
void product_backward(MatrixSize size, const float* dy, const PackedWeight& weight, float* dx);
// dW = dy^T x, or += with `add`.
void product_weight(MatrixSize size, const float* x, const float* dy, bool add, float* d_weight);

}  // namespace normlab
