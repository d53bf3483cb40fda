#include "normlab/ops/activation.h"

#include <gtest/gtest.h>

#include "fused_check.h"
#include "normlab/base/fields.h"

namespace normlab {
namespace {

using torch::Tensor;

TEST(Activate, FusedIsAsExactAsComposite) {
  torch::manual_seed(2);
  for (const Activation kind :
       {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::swiglu, Activation::geglu})
    for (const int64_t c : {2, 14, 66, 384}) {
      SCOPED_TRACE(enum_names<Activation>()[static_cast<size_t>(kind)] + " " + std::to_string(c));
      expect_as_exact(
          [=](const std::vector<Tensor>& in, bool fused) { return std::vector{activate(in[0], kind, fused)}; },
          {2 * torch::randn({4, 19, c})});
    }
}

}  // namespace
}  // namespace normlab
