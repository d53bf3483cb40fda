// The constants of the approximately normalised transformer: the mean norm after each factor is 1.
#include "normlab/nn/mlp_factors.h"

#include <gtest/gtest.h>

#include "normlab/norm/nu.h"
#include "normlab/ops/activation.h"
#include "normlab/ops/lp_norm.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int draws = 12;  // of weights: single draws scatter by several per cent

Tensor unit_rows(int64_t rows, int64_t cols) {
  return lp_normalize(torch::randn({rows, cols}, torch::kFloat64), 2.0, 1e-12);
}
double mean_norm(const Tensor& x) { return x.norm(2, -1).mean().item<double>(); }

ModelConfig width(int d_model, Activation activation, int d_ff = 0) {
  ModelConfig config;
  config.d_model = d_model;
  config.n_heads = 4;
  config.activation = activation;
  config.d_ff = d_ff;
  resolve_model(config, find_scheme("none"));
  return config;
}

TEST(MlpFactors, KeepTheMeanNormAfterEveryStepAtOne) {
  torch::manual_seed(1);
  for (const ModelConfig& c :
       {width(128, Activation::swiglu), width(256, Activation::swiglu), width(192, Activation::swiglu, 512),
        width(256, Activation::gelu), width(256, Activation::relu)}) {
    SCOPED_TRACE(c.d_model);
    const MlpFactors nu = mlp_factors(c);
    double up = 0, hidden = 0, out = 0;
    for (int draw = 0; draw < draws; ++draw) {
      const Tensor h = unit_rows(64, c.d_model), z = h.matmul(unit_rows(c.d_ff, c.d_model).t()) * nu.in;
      Tensor x;
      if (c.activation == Activation::swiglu)
        x = h.matmul(unit_rows(c.d_ff, c.d_model).t()) * nu.in * torch::silu(z * nu.argument) * nu.activation;
      else
        x = activate(z * nu.argument, c.activation, false) * nu.activation;
      up += mean_norm(z) / draws;
      hidden += mean_norm(x) / draws;
      out += mean_norm(x.matmul(unit_rows(c.d_model, c.d_ff).t()) * nu.out) / draws;
    }
    EXPECT_NEAR(up, 1.0, 0.03);
    EXPECT_NEAR(hidden, 1.0, 0.03);
    // relu and gelu have a mean, which the rows of W_out see as one shared direction: the norm spreads, not its square.
    EXPECT_NEAR(out, 1.0, 0.03);
  }
}

TEST(MlpFactors, AttentionsMapsKeepTheMeanNormAtOne) {
  torch::manual_seed(2);
  const int64_t d_model = 256, n_heads = 4, d_head = 64;
  double v = 0, out = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const Tensor h = unit_rows(64, d_model);
    const Tensor heads =
        (h.matmul(unit_rows(n_heads * d_head, d_model).t()) * nu_of_map(d_model, d_head)).view({64, n_heads, d_head});
    v += mean_norm(heads) / draws;
    const Tensor concat = lp_normalize(heads, 2.0, 1e-12).flatten(1);  // unit heads
    out += mean_norm(concat.matmul(unit_rows(d_model, n_heads * d_head).t()) * nu_of_map(d_head, d_model)) / draws;
  }
  EXPECT_NEAR(v, 1.0, 0.03);
  EXPECT_NEAR(out, 1.0, 0.03);
}

TEST(MlpFactors, AreThoseOfThePaperForItsWidths) {
  const MlpFactors nu = mlp_factors(width(256, Activation::swiglu));
  EXPECT_DOUBLE_EQ(nu.in, 0.5);
  EXPECT_DOUBLE_EQ(nu.out, 2.0);
  EXPECT_NEAR(nu.activation, 3.74, 0.03);
}

}  // namespace
}  // namespace normlab
