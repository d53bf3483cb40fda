// What the approximately normalised transformer promises: norms near 1 at any depth, rows of weights at most 1 long.
#include <gtest/gtest.h>

#include "normlab/models/decoder_lm.h"
#include "normlab/train/stepper.h"
#include "recommended.h"

namespace normlab {
namespace {

using torch::Tensor;

ModelConfig shape(int n_layers, int d_model, const NormScheme& scheme) {
  ModelConfig config = with_recommended({}, scheme);
  config.n_layers = n_layers;
  config.n_heads = 4;
  config.d_model = d_model;
  config.seq_len = 16;
  resolve_model(config, scheme);
  return config;
}

// Mean norm of the stream after the last layer of a model as it is initialised.
double final_norm(int n_layers, const NormScheme& scheme) {
  const ModelConfig config = shape(n_layers, 128, scheme);
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  DecoderLm model(config, scheme, 65, 3);
  const Tensor tokens = torch::randint(0, 65, {4, 16}, torch::kInt64);
  return model.hidden(tokens, Pass{}).norm(2, -1).mean().item<double>();
}

TEST(AnGpt, TheStreamKeepsItsNormAtAnyDepth) {
  NormScheme scheme = find_scheme("angpt");
  scheme.alpha_init = {Factor::Rule::number,
                       0.05};  // nu(alpha) is exact for branches of norm 1, and these start shorter
  for (const int depth : {1, 4, 12, 24}) {
    const double norm = final_norm(depth, scheme);
    EXPECT_GT(norm, 0.9) << depth;
    EXPECT_LT(norm, 1.1) << depth;
  }
}

TEST(AnGpt, WithoutNuOfAlphaTheStreamFades) {
  NormScheme scheme = find_scheme("angpt");
  scheme.residual = Residual::lerp;
  EXPECT_LT(final_norm(24, scheme), 0.6);
}

TEST(NGpt, TheStreamHasNormOne) { EXPECT_NEAR(final_norm(6, find_scheme("ngpt")), 1.0, 1e-5); }

Batch batch(int64_t seed) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  const auto whole = torch::kInt64;
  const Tensor first = torch::randint(0, 20, {8, 1}, whole), by = torch::randint(1, 6, {8, 1}, whole);
  const Tensor text = (first + by * torch::arange(17, whole)).remainder(20);  // counts on, in steps of its own
  return {text.slice(1, 0, 16).contiguous(), text.slice(1, 1).contiguous()};
}

double largest_row(DecoderLm& model, double* smallest = nullptr) {
  double largest = 0.0;
  const auto constraints = model.constraints();
  const auto parameters = model.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (constraints[i].kind == Constraint::none) continue;
    const Tensor norms = parameters[i].second.detach().norm(2, constraints[i].columns ? 0 : 1);
    largest = std::max(largest, norms.max().item<double>());
    if (smallest) *smallest = std::min(*smallest, norms.min().item<double>());
  }
  return largest;
}

TEST(AnGpt, RowsOfWeightsStayAtMostOneLong) {
  for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
    const NormScheme scheme = find_scheme("angpt");
    ModelConfig config = shape(2, 32, scheme);
    config.kernels = kernels;
    Stepper stepper(DecoderLm(config, scheme, 20, 3), {});
    double smallest = 2.0;
    EXPECT_NEAR(largest_row(stepper.model(), &smallest), 1.0, 1e-6);
    EXPECT_NEAR(smallest, 1.0, 1e-6);  // unit at the start
    for (int step = 0; step < 20; ++step) {
      stepper.step({batch(step)}, {.training = true, .step = step}, 2e-2, 1.0);
      ASSERT_LE(largest_row(stepper.model()), 1.0 + 1e-6) << step;
    }
    smallest = 2.0;
    largest_row(stepper.model(), &smallest);
    EXPECT_LT(smallest, 0.999);  // it is a ball, not a sphere
  }
}

TEST(NGpt, WeightsStayOnTheSphere) {
  for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
    const NormScheme scheme = find_scheme("ngpt");
    ModelConfig config = shape(2, 32, scheme);
    config.kernels = kernels;
    Stepper stepper(DecoderLm(config, scheme, 20, 3), {});
    for (int step = 0; step < 5; ++step) stepper.step({batch(step)}, {.training = true, .step = step}, 2e-2, 1.0);
    double smallest = 2.0;
    EXPECT_NEAR(largest_row(stepper.model(), &smallest), 1.0, 1e-6);
    EXPECT_NEAR(smallest, 1.0, 1e-6);
  }
}

// The mean loss of the last ten steps, from the first at the full rate: no warm-up, no weight decay.
double trained_loss(const NormScheme& scheme, int n_layers, int steps) {
  Stepper stepper(DecoderLm(shape(n_layers, 32, scheme), scheme, 20, 3),
                  AdamWSettings{.beta2 = 0.95, .weight_decay = 0.0});
  double last = 0.0;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = stepper.step({batch(step)}, {.training = true, .step = step}, 1e-2, 1.0);
    if (!result.finite) return std::numeric_limits<double>::infinity();
    if (step >= steps - 10) last += result.loss / 10;
  }
  return last;
}

TEST(AnGpt, TrainsWithoutWarmUpAndDecay) { EXPECT_LT(trained_loss(find_scheme("angpt"), 6, 150), 2.6); }

TEST(AnGpt, RemovingNuOfAlphaHurts) {
  NormScheme without = find_scheme("angpt");
  without.residual = Residual::lerp;
  EXPECT_GT(trained_loss(without, 6, 60), trained_loss(find_scheme("angpt"), 6, 60) + 0.1);
}

}  // namespace
}  // namespace normlab
