// Probes of a translator: the three attentions by their definitions, and a training that they leave as it was.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "normlab/base/text.h"
#include "normlab/ops/attention_stats.h"
#include "normlab/probe/step_probe.h"
#include "normlab/train/stepper.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr AdamWSettings adamw{.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1};

EncoderDecoder make(const NormScheme& scheme, Kernels kernels, torch::TensorOptions options = torch::kFloat32) {
  ModelConfig config;
  config.n_layers = 2, config.n_heads = 4, config.n_kv_heads = 2, config.d_model = 32, config.seq_len = 19;
  config.bias = true, config.kernels = kernels;
  resolve_model(config, scheme);
  return {
      config, scheme, {.vocab_size = 11, .encoder_layers = 3, .length_p975 = 9, .label_smoothing = 0.1}, 3, options};
}

// Of unequal lengths, so that some keys are padding.
TranslationBatch some_pairs(int64_t rows, uint64_t seed) {
  torch::manual_seed(seed);
  const Tensor target = torch::randint(0, 11, {rows, 7}, torch::kInt64);
  const Tensor lengths = torch::randint(3, 10, {rows}, torch::kInt64);
  return {.source = {torch::randint(0, 11, {rows, 9}, torch::kInt64), lengths},
          .inputs_bt = target.slice(1, 0, 6).contiguous(),
          .labels_bt = target.slice(1, 1).contiguous(),
          .outputs = make_output_vocabulary(std::vector<bool>(11, true))};
}

struct KeepAttention : Observer {
  void see(Site site, Place place, const Tensor& x, const Pass&) override {
    if (site == Site::stream) streams[key_of(place)] = x.detach();
  }
  AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                            const AttentionWeights& weights, const Pass&) override {
    for (const QkvPart& each : qkv) each.x_bthd.retain_grad();
    seen[key_of(place)] = {qkv, call, weights};
    return nullptr;
  }
  void gradients(const std::vector<std::vector<Tensor>>&) override {}
  struct Seen {
    QkvParts qkv;
    AttentionCall call;
    AttentionWeights weights;
  };
  std::map<std::string, Seen> seen;
  std::map<std::string, Tensor> streams;
};

// Queries, keys and values of a projection; gradients of them likewise.
std::vector<Tensor> heads_of(const QkvParts& qkv, bool gradient) {
  std::vector<Tensor> list;
  for (const QkvPart& each : qkv) {
    const Tensor x = gradient ? each.x_bthd.grad() : each.x_bthd.detach();
    int64_t first = 0;
    for (const int64_t count : {each.queries, each.keys, each.values}) {
      if (count > 0) list.push_back(x.narrow(2, first, count));
      first += count;
    }
  }
  return list;
}

std::map<std::string, double> expected(EncoderDecoder& exact, const TranslationBatch& data) {
  KeepAttention kept;
  (exact.loss_sum(data, {.training = true, .observer = &kept}) / static_cast<double>(data.words())).backward();
  std::map<std::string, double> values;
  for (const auto& [key, what] : kept.seen) {
    const auto& [qkv, call, weights] = what;
    const auto parts = heads_of(qkv, false), gradients = heads_of(qkv, true);
    AttentionStats whole;
    for (int64_t b = 0; b < data.rows(); ++b) {
      AttentionCall own = call;
      if (call.key_lengths_b.defined()) own.key_lengths_b = call.key_lengths_b.slice(0, b, b + 1);
      const auto row = [&](const Tensor& x) { return x.slice(0, b, b + 1); };
      const Tensor logits = attention_logits(normalise_queries(row(parts[0]), own, weights, 0),
                                             normalise_keys(row(parts[1]), own, weights, 0), own);
      for (const AttentionStats& head : attention_stats(logits[0].detach())) merge(whole, head);
    }
    values[concat("attn/", key, "/max_logit")] = static_cast<double>(whole.max_logit);
    values[concat("attn/", key, "/entropy")] = whole.sum_entropy / static_cast<double>(whole.n_rows);
    values[concat("attn/", key, "/q_norm")] = parts[0].norm(2, -1).mean().item<double>();
    values[concat("attn/", key, "/k_norm")] = parts[1].norm(2, -1).mean().item<double>();
    values[concat("grad/", key, "/q")] = gradients[0].norm().item<double>();
    values[concat("grad/", key, "/v")] = gradients[2].norm().item<double>();
  }
  for (const auto& [key, x] : kept.streams)
    values[concat("stream/", key, "/norm")] = x.norm(2, -1).mean().item<double>();
  for (const auto& [name, tensor] : exact.parameters()) {
    const auto words = split(name, '.');  // decoder.1.cross.kv.weight
    if (words.size() != 5 || words[4] != "weight") continue;
    const std::string key = concat(words[2] == "cross" ? "cross" : words[0], "0", words[1]);
    const Tensor grad = tensor.grad();
    const auto rows = [&](int64_t first, int64_t count) { return grad.narrow(0, first, count).norm().item<double>(); };
    if (words[3] == "qkv") values[concat("grad/", key, "/w_k")] = rows(32, 16);
    if (words[3] == "kv")
      values[concat("grad/", key, "/w_k")] = rows(0, 16), values[concat("grad/", key, "/w_v")] = rows(16, 16);
    if (words[3] == "q") values[concat("grad/", key, "/w_q")] = rows(0, 32);
    if (words[3] == "out" && words[2] != "mlp") values[concat("grad/", key, "/w_o")] = rows(0, 32);
  }
  return values;
}

TEST(TranslatorProbe, ReadingsFollowTheirDefinitions) {
  for (const char* name : {"none", "qknorm", "lp"})
    for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
      SCOPED_TRACE(name);
      const NormScheme& scheme = find_scheme(name);
      TranslationStepper stepper(make(scheme, kernels), adamw);
      for (int64_t step = 0; step < 3; ++step)
        stepper.step({some_pairs(5, 7 + static_cast<uint64_t>(step))}, {.training = true, .step = step}, 3e-2, 1.0);
      EncoderDecoder exact = make(scheme, Kernels::composite, torch::kFloat64);
      {
        const torch::NoGradGuard no_grad;
        NamedTensors from = stepper.model().parameters(), to = exact.parameters();
        for (size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second);
      }
      const TranslationBatch data = some_pairs(5, 99);
      StepProbe probe(stepper.model(), {.first_pass = 3, .batch_rows = {5}});
      stepper.step({data}, {.training = true, .step = 3, .observer = &probe}, 3e-2, 1.0);
      std::map<std::string, double> got;
      for (const Reading& reading : probe.readings()) {
        EXPECT_TRUE(std::isfinite(reading.value)) << name_of(reading);
        EXPECT_TRUE(got.emplace(name_of(reading), reading.value).second) << name_of(reading);
      }
      const auto want = expected(exact, data);
      EXPECT_EQ(want.size(), 7U * 6U + 7U + 5U * 2U + 2U * 4U);  // attentions, streams, their maps
      for (const auto& [key, value] : want) {
        ASSERT_TRUE(got.contains(key)) << key;
        EXPECT_NEAR(got[key], value, 1e-4 * std::abs(value) + 1e-6) << key;
      }
      for (const char* key : {"update/cross01/w_q", "output/log_partition", "attn/encoder02/head3/entropy"})
        EXPECT_TRUE(got.contains(key)) << key;
      EXPECT_EQ(got.contains("update/cross00/angle_w_k"), scheme.qk != QkNorm::none);
    }
}

// Batches of a step may differ in their rows.
TEST(TranslatorProbe, LeavesEveryBitOfTheTrainingAsItWas) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
    const NormScheme& scheme = find_scheme("lp");
    TranslationStepper plain(make(scheme, kernels), adamw), watched(make(scheme, kernels), adamw);
    for (int64_t step = 0; step < 3; ++step) {
      const std::vector<TranslationBatch> data = {some_pairs(4, static_cast<uint64_t>(step)), some_pairs(3, 50)};
      plain.step(data, {.training = true, .seed = 1, .step = 2 * step}, 1e-2, 1.0);
      StepProbe probe(watched.model(), {.first_pass = 2 * step, .batch_rows = {4, 3}});
      watched.step(data, {.training = true, .seed = 1, .step = 2 * step, .observer = &probe}, 1e-2, 1.0);
      EXPECT_FALSE(probe.readings().empty());
    }
    for (size_t i = 0; i < plain.parameters().size(); ++i)
      EXPECT_TRUE(torch::equal(plain.parameters()[i], watched.parameters()[i])) << i;
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace normlab
