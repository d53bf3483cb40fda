#include "normlab/probe/inspection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace normlab {
namespace {

using torch::Tensor;

struct Sample {
  DecoderLm model;
  Tensor inputs, targets;
};

Sample sample(const char* name) {
  const NormScheme& scheme = find_scheme(name);
  ModelConfig config;
  config.n_layers = 2, config.n_heads = 4, config.n_kv_heads = 2, config.d_model = 24, config.seq_len = 17;
  config.positions = Positions::rope;
  resolve_model(config, scheme);
  torch::manual_seed(3);
  const Tensor text = torch::randint(0, 11, {3, 18}, torch::kInt64);
  Sample made{{config, scheme, 11, 3}, text.slice(1, 0, 17).contiguous(), text.slice(1, 1).contiguous()};
  const torch::NoGradGuard no_grad;
  for (auto& [parameter, tensor] : made.model.parameters())
    if (parameter.ends_with("qkv.weight")) tensor.mul_(20.0);
  return made;
}

double reading(const Inspection& found, Quantity quantity, int layer, int head) {
  for (const Reading& each : found.readings)
    if (each.quantity == quantity && each.layer == layer && each.head == head) return each.value;
  return std::nan("");
}

TEST(Inspection, PositionsFloorsAndReadingsAgree) {
  for (const char* name : {"none", "qknorm"}) {
    Sample s = sample(name);
    const Inspection found = inspect(s.model, s.inputs, s.targets);
    EXPECT_NEAR(found.loss, s.model.loss(s.inputs, s.targets, {}).item<double>(), 1e-5);
    ASSERT_EQ(found.positions.size(), 2U);
    ASSERT_EQ(found.positions[0].size(), 17U);
    ASSERT_EQ(found.floors.size(), 8U);
    for (int layer = 0; layer < 2; ++layer) {
      double largest = -1e30, entropy = 0.0;
      const auto& positions = found.positions[static_cast<size_t>(layer)];
      EXPECT_TRUE(std::isnan(positions[0].relative_entropy));  // one key
      for (size_t i = 0; i < 17; ++i) {
        largest = std::max(largest, positions[i].max_logit);
        if (i > 0) entropy += positions[i].relative_entropy / 16;
      }
      EXPECT_NEAR(largest, reading(found, Quantity::max_logit, layer, -1), 1e-4 * std::abs(largest));
      EXPECT_NEAR(entropy, reading(found, Quantity::relative_entropy, layer, -1), 1e-4);
    }
    for (const EntropyFloor& floor : found.floors) {
      EXPECT_GT(floor.value, 0.0);
      EXPECT_LE(floor.value, reading(found, Quantity::entropy, floor.place.layer, floor.place.head) * (1 + 1e-4));
    }
  }
}

// The extremal row of the theorem: one logit above n - 1 equal ones.
TEST(Inspection, EntropyFloorIsReachedAndNeverUndercut) {
  torch::manual_seed(1);
  for (const int64_t n : {2, 3, 17})
    for (const double sigma : {0.0, 0.3, 2.0, 9.0}) {
      const auto count = static_cast<double>(n);
      const auto entropy = [](const Tensor& row) {
        const Tensor a = row.softmax(0);
        return -(a * a.clamp_min(1e-300).log()).sum().item<double>();
      };
      Tensor extreme = torch::full({n}, -sigma / std::sqrt(count * (count - 1)), torch::kFloat64);
      extreme[0] = sigma * std::sqrt((count - 1) / count);
      EXPECT_NEAR(extreme.norm().item<double>(), sigma, 1e-12);
      EXPECT_NEAR(entropy_floor(sigma, n), entropy(extreme), 1e-12);
      for (int draw = 0; draw < 50; ++draw) {
        Tensor row = torch::randn({n}, torch::kFloat64);
        row = row - row.mean();
        EXPECT_GE(entropy(row * (sigma / row.norm())), entropy_floor(sigma, n) - 1e-12);
      }
    }
}

TEST(Inspection, MapsAreTheWeightsOfTheirHeads) {
  Sample s = sample("qknorm");
  const auto maps = attention_maps(s.model, s.inputs.slice(0, 0, 1), {{1, 2}, {0, 3}});
  ASSERT_EQ(maps.size(), 2U);
  for (const AttentionMap& map : maps) {
    ASSERT_EQ(map.weights.size(), 17U);
    for (size_t i = 0; i < 17; ++i) {
      double sum = 0.0;
      for (size_t j = 0; j < 17; ++j) {
        EXPECT_EQ(std::isnan(map.weights[i][j]), j > i);
        if (j <= i) sum += map.weights[i][j];
      }
      EXPECT_NEAR(sum, 1.0, 1e-12);
    }
  }
  EXPECT_NE(maps[0].weights[9][3], maps[1].weights[9][3]);
}

TEST(Inspection, SpectraAreThoseOfTheProduct) {
  Sample s = sample("none");
  const Inspection found = inspect(s.model, s.inputs, s.targets);
  ASSERT_EQ(found.spectra.size(), 8U);
  for (const Spectrum& spectrum : found.spectra) {
    ASSERT_EQ(spectrum.values.size(), 6U);
    EXPECT_TRUE(std::is_sorted(spectrum.values.rbegin(), spectrum.values.rend()));
    EXPECT_NEAR(spectrum.share(6), 1.0, 1e-12);
    EXPECT_LT(spectrum.share(1), spectrum.share(4));
  }
  for (const auto& [name, tensor] : s.model.parameters()) {
    if (name != "layers.1.attn.qkv.weight") continue;
    const Tensor w = tensor.detach().to(torch::kFloat64);
    const Tensor product = w.slice(0, 18, 24).t().mm(w.slice(0, 30, 36));  // query head 3, key head 1
    double squares = 0.0;
    for (const double value : found.spectra[7].values) squares += value * value;
    EXPECT_NEAR(std::sqrt(squares), product.norm().item<double>(), 1e-9 * product.norm().item<double>());
  }
}

TEST(Inspection, NotableHeadsAreSharpestFlattestAndLargest) {
  const std::vector<Reading> readings = {
      {Quantity::relative_entropy, 0, -1, 0.0}, {Quantity::relative_entropy, 0, 0, 0.5},
      {Quantity::relative_entropy, 0, 1, 0.2},  {Quantity::relative_entropy, 1, 0, 0.9},
      {Quantity::max_logit, 0, 0, 3.0},         {Quantity::max_logit, 0, 1, 9.0}};
  EXPECT_EQ(notable_heads(readings), (std::vector<HeadPlace>{{0, 1}, {1, 0}}));
}

}  // namespace
}  // namespace normlab
