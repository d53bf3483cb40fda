// Lp-normalise a tensor, with gradients: rows of length 1 in the norm of your choice.
#include <cstdio>

#include "normlab/ops/lp_norm.h"

using namespace normlab;

int main() {
  const torch::Tensor x = torch::tensor({{3.0F, -4.0F, 0.0F}, {0.0F, 0.0F, 0.0F}}).requires_grad_();
  bool ok = true;
  for (const double p : {1.0, 2.0, 3.0}) {
    const torch::Tensor y = lp_normalize(x, p, /*eps=*/1e-12);
    const double length = y[0].norm(p).item<double>();
    std::printf("p = %.0f: (%.3f, %.3f, %.3f), ||y||_p = %.6f\n", p, y[0][0].item<double>(), y[0][1].item<double>(),
                y[0][2].item<double>(), length);
    y.sum().backward();
    // A row of zeros stays zero, and its gradient finite.
    ok = ok && std::abs(length - 1.0) < 1e-6 && x.grad().isfinite().all().item<bool>();
  }
  return ok ? 0 : 1;
}
