#include "normlab/probe/step_probe.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "normlab/base/text.h"
#include "normlab/ops/attention_stats.h"
#include "normlab/probe/attention_readings.h"
#include "normlab/train/stepper.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int vocab = 11, layers = 2;
constexpr AdamWSettings settings{.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1};

ModelConfig small(const NormScheme& scheme, Kernels kernels) {
  ModelConfig config;
  config.n_layers = layers, config.n_heads = 4, config.n_kv_heads = 2, config.d_model = 32, config.seq_len = 19;
  config.positions = Positions::rope, config.bias = true, config.kernels = kernels;
  resolve_model(config, scheme);
  return config;
}

// One scheme of each kind of logits and of stream.
std::vector<NormScheme> schemes() {
  const std::set<std::string> wanted = {"none",    "qknorm", "lp",   "rms",  "layernorm",
                                        "softcap", "ssmax",  "ngpt", "angpt"};
  std::vector<NormScheme> list;
  for (const NormScheme& scheme : catalogue())
    if (wanted.contains(scheme.name)) list.push_back(scheme);
  return list;
}

Batch batch(int64_t rows, uint64_t seed) {
  torch::manual_seed(seed);
  const Tensor text = torch::randint(0, vocab, {rows, 20}, torch::kInt64);
  return {text.slice(1, 0, 19).contiguous(), text.slice(1, 1).contiguous()};
}

// Keeps every tensor it sees, with its gradient.
struct Keeper : Observer {
  void see(Site site, Place place, const Tensor& x, const Pass&) override {
    if (x.requires_grad()) x.retain_grad();
    auto& list = site == Site::stream ? streams : site == Site::attn_out ? attn : site == Site::mlp_out ? mlp : logits;
    list[place.layer] = x;
  }
  AttentionStats* attention(Place place, const QkvParts& x, const AttentionCall& call, const AttentionWeights& used,
                            const Pass&) override {
    x.front().x_bthd.retain_grad();
    qkv[place.layer] = x.front().x_bthd, calls[place.layer] = call, weights[place.layer] = used;
    return nullptr;
  }
  void gradients(const std::vector<std::vector<Tensor>>&) override {}
  std::map<int, Tensor> streams, attn, mlp, logits, qkv;
  std::map<int, AttentionCall> calls;
  std::map<int, AttentionWeights> weights;
};

using Values = std::map<std::string, double>;

double length(const Tensor& x) { return x.to(torch::kFloat64).norm().item<double>(); }
double mean_length(const Tensor& x) { return x.norm(2, -1).mean().item<double>(); }
double mean_peak(const Tensor& x) { return (x.abs().amax(-1) / x.norm(2, -1)).mean().item<double>(); }

// The readings of one step by their definitions, from a model in double and tensors that were kept.
Values by_definition(DecoderLm& exact, const Batch& data, const std::map<std::string, Tensor>& after) {
  Keeper kept;
  const Tensor loss = exact.loss(data.inputs, data.targets, {.training = true, .observer = &kept});
  loss.backward();
  std::map<std::string, Tensor> before;
  for (const auto& [name, tensor] : exact.parameters()) before[name] = tensor;
  Values values;
  const int64_t d = exact.config().d_head, b = data.inputs.size(0);
  for (int layer = 0; layer < layers; ++layer) {
    const auto add = [&](Quantity quantity, int head, double value) {
      values[name_of({quantity, layer, head, 0.0})] = value;
    };
    const auto parts = kept.qkv[layer].detach().split_with_sizes({4, 2, 2}, 2);
    const AttentionCall& call = kept.calls[layer];
    const AttentionWeights& used = kept.weights[layer];
    const Tensor logits =
        attention_logits(normalise_queries(parts[0], call, used, 0), normalise_keys(parts[1], call, used, 0), call)
            .detach();
    AttentionStats whole;
    for (int head = -1; head < 4; ++head) {
      if (head >= 0) {
        AttentionStats one;
        for (int64_t s = 0; s < b; ++s) merge(one, attention_stats(logits[s].slice(0, head, head + 1))[0]);
        std::vector<Reading> readings;
        add_attention(readings, {Stack::layers, layer}, head, one, b);
        for (const Reading& reading : readings) values[name_of(reading)] = reading.value;
        merge(whole, one);
      }
      const Tensor q = head < 0 ? parts[0] : parts[0].select(2, head);
      const Tensor k = head < 0 ? parts[1] : parts[1].select(2, head / 2);
      add(Quantity::q_norm, head, mean_length(q)), add(Quantity::k_norm, head, mean_length(k));
      add(Quantity::q_peak, head, mean_peak(q)), add(Quantity::k_peak, head, mean_peak(k));
      if (!used.gain.defined()) continue;
      const Tensor gain = used.gain.numel() == 1 ? used.gain.expand({4, 1}) : used.gain.view({4, -1});
      add(Quantity::gain, head, (head < 0 ? gain : gain[head]).mean().item<double>());
    }
    std::vector<Reading> readings;
    add_attention(readings, {Stack::layers, layer}, -1, whole, b, 4);
    for (const Reading& reading : readings) values[name_of(reading)] = reading.value;

    const std::string qkv = concat("layers.", layer, ".attn.qkv.weight"),
                      out = concat("layers.", layer, ".attn.out.weight"),
                      bias = concat("layers.", layer, ".attn.qkv.bias");
    const std::vector<int64_t> sizes = {4 * d, 2 * d, 2 * d};
    const auto grads = before[qkv].grad().split_with_sizes(sizes, 0);
    const auto old_rows = before[qkv].detach().split_with_sizes(sizes, 0),
               new_rows = after.at(qkv).split_with_sizes(sizes, 0);
    const Quantity grad[] = {Quantity::grad_w_q, Quantity::grad_w_k, Quantity::grad_w_v};
    const Quantity update[] = {Quantity::update_w_q, Quantity::update_w_k, Quantity::update_w_v};
    for (size_t i = 0; i < 3; ++i) {
      add(grad[i], -1, length(grads[i]));
      add(update[i], -1, length(new_rows[i] - old_rows[i]) / length(old_rows[i]));
    }
    add(Quantity::grad_w_o, -1, length(before[out].grad()));
    add(Quantity::update_w_o, -1, length(after.at(out) - before[out].detach()) / length(before[out].detach()));
    if (call.form.qk != QkNorm::none)
      for (const bool keys : {false, true}) {
        double sum = 0.0;
        const int64_t heads = keys ? 2 : 4, first = keys ? 4 * d : 0;
        for (int64_t h = 0; h < heads; ++h) {
          const auto vector = [&](const Tensor& w, const Tensor& offset) {
            const Tensor rows = torch::cat({w, offset.unsqueeze(1)}, 1).slice(0, first + h * d, first + (h + 1) * d);
            return (rows / rows.norm()).flatten();
          };
          const Tensor one = vector(before[qkv].detach(), before[bias].detach()),
                       two = vector(after.at(qkv), after.at(bias));
          sum += 2.0 * std::asin(0.5 * length(one - two));  // half the chord is the sine of half the angle
        }
        add(keys ? Quantity::angle_w_k : Quantity::angle_w_q, -1, sum / static_cast<double>(heads));
      }
    const auto d_qkv = kept.qkv[layer].grad().split_with_sizes({4, 2, 2}, 2);
    add(Quantity::grad_q, -1, length(d_qkv[0])), add(Quantity::grad_k, -1, length(d_qkv[1]));
    add(Quantity::grad_v, -1, length(d_qkv[2]));
    add(Quantity::grad_attn_out, -1, length(kept.attn[layer].grad()));
    add(Quantity::grad_mlp_out, -1, length(kept.mlp[layer].grad()));
  }
  for (int layer = 0; layer <= layers; ++layer)
    values[name_of({Quantity::stream_norm, layer, -1, 0.0})] = mean_length(kept.streams[layer].detach());
  values["output/log_partition"] = kept.logits[layers].detach().logsumexp(-1).mean().item<double>();
  return values;
}

// After a few steps, so that attention is no longer uniform.
TEST(StepProbe, ReadingsFollowTheirDefinitions) {
  for (const NormScheme& scheme : schemes())
    for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
      SCOPED_TRACE(scheme.name);
      Stepper stepper(DecoderLm(small(scheme, kernels), scheme, vocab, 3), settings);
      for (int64_t step = 0; step < 5; ++step)
        stepper.step({batch(5, 7 + static_cast<uint64_t>(step))}, {.training = true, .step = step}, 3e-2, 1.0);
      DecoderLm exact(small(scheme, Kernels::composite), scheme, vocab, 3, torch::kFloat64);
      {
        const torch::NoGradGuard no_grad;
        NamedTensors from = stepper.model().parameters(), to = exact.parameters();
        for (size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second);
      }
      const Batch data = batch(5, 99);
      StepProbe probe(stepper.model(), {.first_pass = 5, .batch_rows = {5}});
      stepper.step({data}, {.training = true, .step = 5, .observer = &probe}, 3e-2, 1.0);
      std::map<std::string, Tensor> after;
      for (const auto& [name, tensor] : stepper.model().parameters()) after[name] = tensor.detach().to(torch::kFloat64);
      const Values want = by_definition(exact, data, after);
      Values got;
      for (const Reading& reading : probe.readings()) got[name_of(reading)] = reading.value;
      EXPECT_EQ(got.size(), want.size());
      for (const auto& [name, value] : want) {
        ASSERT_TRUE(got.contains(name)) << name;
        EXPECT_NEAR(got[name], value, 1e-4 * std::abs(value) + 1e-6) << name;
      }
    }
}

TEST(StepProbe, SumsOverAllBatchesOfAStep) {
  const NormScheme& scheme = find_scheme("lp");
  const auto probed = [&](const std::vector<Batch>& batches, const std::vector<int64_t>& rows) {
    Stepper stepper(DecoderLm(small(scheme, Kernels::fused), scheme, vocab, 3), settings);
    StepProbe probe(stepper.model(), {.first_pass = 8, .batch_rows = rows});
    stepper.step(batches, {.training = true, .step = 8, .observer = &probe}, 1e-2, 1.0);
    return probe.readings();
  };
  const Batch whole = batch(6, 4);
  const auto half = [&](int64_t first) {
    return Batch{whole.inputs.slice(0, first, first + 3), whole.targets.slice(0, first, first + 3)};
  };
  const auto one = probed({whole}, {6}), two = probed({half(0), half(3)}, {3, 3});
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(one[i].value, two[i].value, 1e-4 * std::abs(one[i].value) + 1e-7) << name_of(one[i]);
}

TEST(StepProbe, LeavesEveryBitOfTheTrainingAsItWas) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  for (const NormScheme& scheme : schemes())
    for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
      ModelConfig config = small(scheme, kernels);
      config.dropout = 0.2;
      Stepper plain(DecoderLm(config, scheme, vocab, 3), settings),
          watched(DecoderLm(config, scheme, vocab, 3), settings);
      for (int64_t step = 0; step < 4; ++step) {
        const std::vector<Batch> data = {batch(4, static_cast<uint64_t>(step))};
        plain.step(data, {.training = true, .seed = 1, .step = step}, 1e-2, 1.0);
        StepProbe probe(watched.model(), {.first_pass = step, .batch_rows = {4}});
        watched.step(data, {.training = true, .seed = 1, .step = step, .observer = &probe}, 1e-2, 1.0);
        EXPECT_FALSE(probe.readings().empty());
      }
      for (size_t i = 0; i < plain.parameters().size(); ++i)
        EXPECT_TRUE(torch::equal(plain.parameters()[i], watched.parameters()[i])) << scheme.name << " " << i;
    }
  at::set_num_threads(threads);
}

TEST(StepProbe, ReadsAForwardPassAlone) {
  const NormScheme& scheme = find_scheme("qknorm");
  DecoderLm model(small(scheme, Kernels::fused), scheme, vocab, 3);
  StepProbe probe(model, {.batch_rows = {5}});
  const torch::NoGradGuard no_grad;
  model.logits(batch(5, 1).inputs, {.observer = &probe});
  for (const Reading& reading : probe.readings()) {
    EXPECT_TRUE(std::isfinite(reading.value)) << name_of(reading);
    const std::string group = row_of(reading.quantity).group;
    EXPECT_TRUE(group != "grad" && group != "update") << name_of(reading);
  }
}

TEST(Quantities, NamesAndDefinitions) {
  EXPECT_EQ(name_of({Quantity::entropy, 3, 1, 0.0}), "attn/layer03/head1/entropy");
  EXPECT_EQ(name_of({Quantity::stream_norm, 12, -1, 0.0}), "stream/layer12/norm");
  EXPECT_EQ(name_of({Quantity::log_partition, -1, -1, 0.0}), "output/log_partition");
  EXPECT_EQ(name_of({Quantity::entropy, 3, 1, 0.0, Stack::encoder}), "attn/encoder03/head1/entropy");
  EXPECT_EQ(name_of({Quantity::grad_w_q, 0, -1, 0.0, Stack::decoder}), "grad/decoder00/w_q");
  EXPECT_EQ(name_of({Quantity::update_w_o, 11, -1, 0.0, Stack::cross}), "update/cross11/w_o");
  EXPECT_EQ(quantities().size(), static_cast<size_t>(Quantity::log_partition) + 1);
  EXPECT_STREQ(row_of(Quantity::angle_w_k).key, "angle_w_k");
  for (const QuantityRow& row : quantities()) EXPECT_NE(definitions().find(row.definition), std::string::npos);
}

}  // namespace
}  // namespace normlab
