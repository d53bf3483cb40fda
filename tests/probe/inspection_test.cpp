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

TEST(Inspection, MapsAreTheWeightsAndLogitsOfEveryHead) {
  Sample s = sample("qknorm");
  const auto maps = attention_maps(s.model, s.inputs.slice(0, 0, 1));
  ASSERT_EQ(maps.size(), 8U);
  for (size_t m = 0; m < maps.size(); ++m) {
    const AttentionMap& map = maps[m];
    EXPECT_EQ(map.place, (HeadPlace{static_cast<int>(m / 4), static_cast<int>(m % 4)}));
    ASSERT_EQ(map.weights.size(), 17U);
    for (size_t i = 0; i < 17; ++i) {
      double sum = 0.0, exponentials = 0.0;
      for (size_t j = 0; j < 17; ++j) {
        EXPECT_EQ(std::isnan(map.weights[i][j]), j > i);
        EXPECT_EQ(std::isnan(map.logits[i][j]), j > i);
        if (j <= i) sum += map.weights[i][j], exponentials += std::exp(map.logits[i][j]);
      }
      EXPECT_NEAR(sum, 1.0, 1e-12);
      for (size_t j = 0; j <= i; ++j) EXPECT_NEAR(map.weights[i][j], std::exp(map.logits[i][j]) / exponentials, 1e-9);
    }
  }
  EXPECT_NE(maps[6].weights[9][3], maps[3].weights[9][3]);
}

TEST(Inspection, HistogramsCountEveryVisibleLogit) {
  Sample s = sample("none");
  const Inspection found = inspect(s.model, s.inputs, s.targets);
  ASSERT_EQ(found.histograms.size(), 8U);
  for (const LogitHistogram& each : found.histograms) {
    const double largest = reading(found, Quantity::max_logit, each.place.layer, each.place.head);
    EXPECT_NEAR(each.high, largest, 1e-4 * std::abs(largest));
    EXPECT_NEAR(each.low, reading(found, Quantity::min_logit, each.place.layer, each.place.head),
                1e-4 * std::abs(each.low));
    double total = 0.0;
    for (const double count : each.counts) total += count;
    EXPECT_EQ(total, 3 * 17 * 18 / 2);  // three windows of 17 queries
    EXPECT_GT(each.counts.front(), 0.0);
    EXPECT_GT(each.counts.back(), 0.0);
  }
  // The first window's maps give the same counts as an inspection of it alone.
  const Inspection alone = inspect(s.model, s.inputs.slice(0, 0, 1), s.targets.slice(0, 0, 1));
  const auto maps = attention_maps(s.model, s.inputs.slice(0, 0, 1));
  for (size_t head = 0; head < maps.size(); ++head) {
    const LogitHistogram& each = alone.histograms[head];
    const double middle = (each.low + each.high) / 2;
    double below = 0.0, counted = 0.0;
    for (const auto& row : maps[head].logits)
      for (const double logit : row) below += logit < middle ? 1.0 : 0.0;
    for (size_t i = 0; i < each.counts.size() / 2; ++i) counted += each.counts[i];
    EXPECT_EQ(counted, below);
  }
}

// Pairs of unequal lengths, one at a time.
TEST(Inspection, TranslatorsHaveThreeAttentions) {
  const NormScheme& scheme = find_scheme("qknorm");
  ModelConfig config;
  config.n_layers = 2, config.n_heads = 4, config.n_kv_heads = 2, config.d_model = 32, config.seq_len = 19;
  resolve_model(config, scheme);
  EncoderDecoder model(config, scheme, {.vocab_size = 11, .encoder_layers = 3, .length_p975 = 9}, 3);
  torch::manual_seed(5);
  std::vector<TranslationBatch> pairs;
  double loss = 0.0;
  int64_t words = 0, keys = 0;
  for (const auto& [s, t] : {std::pair<int64_t, int64_t>(9, 4), {5, 7}}) {
    const Tensor target = torch::randint(0, 11, {1, t + 1}, torch::kInt64);
    pairs.push_back({.source = {torch::randint(0, 11, {1, s}, torch::kInt64), torch::full({1}, s, torch::kInt64)},
                     .inputs_bt = target.slice(1, 0, t).contiguous(),
                     .labels_bt = target.slice(1, 1).contiguous(),
                     .outputs = make_output_vocabulary(std::vector<bool>(11, true))});
    const torch::NoGradGuard no_grad;
    loss += model.loss_sum(pairs.back(), {}).item<double>();
    words += t, keys += s * t;
  }
  const Inspection found = inspect(model, pairs);
  EXPECT_NEAR(found.loss, loss / static_cast<double>(words), 1e-5);
  ASSERT_EQ(found.places.size(), 7U);  // encoder 3, decoder 2, cross 2
  EXPECT_EQ(describe(found.places[0]), "encoder layer 0");
  EXPECT_EQ(describe(found.places[6]), "cross-attention layer 1");
  EXPECT_EQ(found.positions[0].size(), 9U);
  EXPECT_EQ(found.positions[6].size(), 7U);
  EXPECT_EQ(found.spectra.size(), 28U);
  EXPECT_EQ(found.spectra.back().place, (HeadPlace{1, 3, Stack::cross}));
  double counted = 0.0;
  for (const double count : found.histograms.back().counts) counted += count;
  EXPECT_EQ(counted, static_cast<double>(keys));
  double entropy = 0.0;  // of 4 + 7 queries; the first four positions are in both pairs
  for (size_t i = 0; i < 7; ++i) entropy += found.positions[6][i].relative_entropy * (i < 4 ? 2 : 1) / 11;
  for (const Reading& each : found.readings)
    if (each.quantity == Quantity::relative_entropy && each.stack == Stack::cross && each.head < 0 && each.layer == 1) {
      EXPECT_NEAR(entropy, each.value, 1e-4);
    }
  const auto maps = attention_maps(model, pairs[1]);
  ASSERT_EQ(maps.size(), 28U);
  for (const AttentionMap& map : maps) {
    EXPECT_EQ(map.weights.size(), map.place.stack == Stack::encoder ? 5U : 7U);
    EXPECT_EQ(map.weights[0].size(), map.place.stack == Stack::decoder ? 7U : 5U);
    EXPECT_EQ(std::isnan(map.weights[0].back()), map.place.stack == Stack::decoder);  // only the decoder is causal
  }
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
