// model.checkpoint_activations: the same bits, and observers see each tensor once.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "normlab/nn/observer.h"
#include "normlab/probe/step_probe.h"
#include "normlab/train/stepper.h"
#include "recommended.h"

namespace normlab {
namespace {

using torch::Tensor;

class Threads {  // restores the number of threads
 public:
  explicit Threads(int n) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

ModelConfig small(const NormScheme& scheme, Kernels kernels, bool again) {
  ModelConfig config = with_recommended({}, scheme);
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 16;
  config.seq_len = 8;
  config.dropout = 0.2, config.mlp_dropout = 0.1;
  config.checkpoint_activations = again;
  config.kernels = kernels;
  resolve_model(config, scheme);
  return config;
}

Batch batch(int64_t rows) {
  torch::manual_seed(5);
  const Tensor text = torch::randint(0, 11, {rows, 9}, torch::kInt64);
  return {text.slice(1, 0, 8).contiguous(), text.slice(1, 1).contiguous()};
}

// Two pairs of unequal lengths.
TranslationBatch pairs() {
  const OutputVocabulary outputs = make_output_vocabulary(std::vector<bool>(13, true));
  const Tensor labels = torch::tensor({{7, 8, 9, 2}, {12, 2, -1, -1}}, torch::kInt64);
  return {.source = {torch::tensor({{4, 5, 6, 11, 2}, {7, 4, 2, 0, 0}}, torch::kInt64),
                     torch::tensor({5, 3}, torch::kInt64)},
          .inputs_bt = torch::tensor({{1, 7, 8, 9}, {1, 12, 0, 0}}, torch::kInt64),
          .labels_bt = labels,
          .outputs = outputs};
}

DecoderLm language_model(const NormScheme& scheme, Kernels kernels, bool again) {
  return {small(scheme, kernels, again), scheme, 11, 3};
}
EncoderDecoder translator(const NormScheme& scheme, Kernels kernels, bool again) {
  return {small(scheme, kernels, again), scheme, {.vocab_size = 13, .encoder_layers = 2, .length_p975 = 9}, 3};
}

// What three steps of two passes each leave: losses, norms of gradients, weights.
template <class AnyStepper, class ModelBatch>
std::pair<std::vector<double>, std::vector<Tensor>> three_steps(AnyStepper stepper, const ModelBatch& batch) {
  std::vector<double> numbers;
  for (int64_t step = 0; step < 6; step += 2) {
    const StepResult result = stepper.step({batch, batch}, {.training = true, .seed = 1, .step = step}, 1e-2, 1.0);
    numbers.insert(numbers.end(), {result.loss, result.grad_norm});
  }
  return {numbers, stepper.parameters()};
}

template <class Trained>
void expect_same(const Trained& got, const Trained& expected) {
  EXPECT_EQ(got.first, expected.first);
  for (size_t i = 0; i < expected.second.size(); ++i) EXPECT_TRUE(torch::equal(got.second[i], expected.second[i])) << i;
}

std::vector<Kernels> kernels_for(const NormScheme& scheme) {
  const bool fused = why_not_fused(small(scheme, Kernels::best, false), scheme).empty();
  return fused ? std::vector{Kernels::fused, Kernels::composite} : std::vector{Kernels::composite};
}

TEST(CheckpointActivations, NoBitOfALanguageModelChanges) {
  const Threads two(2);
  for (NormScheme scheme : catalogue()) {
    if (scheme.qk_clip > 0.0) scheme.qk_clip = 0.02;
    for (const Kernels kernels : kernels_for(scheme)) {
      SCOPED_TRACE(scheme.name);
      // With fused kernels each thread has parts after its first, whose gradients are added to sums.
      const Batch windows = batch(kernels == Kernels::fused ? 300 : 4);
      const auto plain = three_steps(Stepper(language_model(scheme, kernels, false), {}), windows);
      expect_same(three_steps(Stepper(language_model(scheme, kernels, true), {}), windows), plain);
    }
  }
}

TEST(CheckpointActivations, NoBitOfATranslatorChanges) {
  for (NormScheme scheme : catalogue()) {
    if (!why_no_translator(scheme).empty()) continue;
    for (const Kernels kernels : kernels_for(scheme)) {
      SCOPED_TRACE(scheme.name);
      const auto plain = three_steps(TranslationStepper(translator(scheme, kernels, false), {}), pairs());
      expect_same(three_steps(TranslationStepper(translator(scheme, kernels, true), {}), pairs()), plain);
    }
  }
}

TEST(CheckpointActivations, AGainOfAllLayersAndBfloat16) {
  NormScheme scheme = find_scheme("qknorm");
  scheme.gain = GainSharing::model;
  for (const Precision dtype : {Precision::float32, Precision::bfloat16}) {
    const auto trained = [&](bool again) {
      ModelConfig config = small(scheme, Kernels::composite, again);
      config.dtype = dtype;
      return three_steps(Stepper(DecoderLm(config, scheme, 11, 3), {}), batch(4));
    };
    expect_same(trained(true), trained(false));
  }
}

// How often each tensor was seen, and how many gradients of them.
class Counter : public Observer {
 public:
  void see(Site site, Place place, const Tensor& x, const Pass&) override {
    ++seen[{static_cast<int>(site), static_cast<int>(place.stack), place.layer}];
    if (x.requires_grad()) x.register_hook([this](const Tensor&) { ++gradients_seen; });
  }
  AttentionStats* attention(Place place, const QkvParts&, const AttentionCall&, const AttentionWeights&,
                            const Pass&) override {
    ++seen[{-1, static_cast<int>(place.stack), place.layer}];
    return nullptr;
  }
  void gradients(const std::vector<std::vector<Tensor>>&) override {}

  std::map<std::array<int, 3>, int> seen;
  int gradients_seen = 0;
};

TEST(CheckpointActivations, ObserversSeeEachTensorOnce) {
  const NormScheme scheme = find_scheme("lp");
  const Threads one(1);
  for (const Kernels kernels : {Kernels::fused, Kernels::composite}) {
    Counter plain, again, of_pairs, of_pairs_again;
    const auto look = [&](auto stepper, const auto& batch, Counter& counter) {
      stepper.differentiate({batch}, {.training = true, .observer = &counter});
    };
    look(Stepper(language_model(scheme, kernels, false), {}), batch(4), plain);
    look(Stepper(language_model(scheme, kernels, true), {}), batch(4), again);
    look(TranslationStepper(translator(scheme, kernels, false), {}), pairs(), of_pairs);
    look(TranslationStepper(translator(scheme, kernels, true), {}), pairs(), of_pairs_again);
    EXPECT_EQ(again.seen, plain.seen);
    EXPECT_EQ(again.gradients_seen, plain.gradients_seen);
    EXPECT_EQ(of_pairs_again.seen, of_pairs.seen);
    EXPECT_EQ(of_pairs_again.gradients_seen, of_pairs.gradients_seen);
    EXPECT_GT(plain.gradients_seen, 4);
  }
}

TEST(CheckpointActivations, ProbesReadTheSame) {
  const NormScheme scheme = find_scheme("lp");
  const auto readings = [&](bool again) {
    Stepper stepper(language_model(scheme, Kernels::fused, again), {});
    StepProbe probe(stepper.model(), {.batch_rows = {4}});
    stepper.step({batch(4)}, {.training = true, .observer = &probe}, 1e-2, 1.0);
    std::vector<double> values;
    for (const Reading& each : probe.readings()) values.push_back(each.value);
    return values;
  };
  EXPECT_EQ(readings(true), readings(false));
}

// Between forward and backward a layer keeps its input alone: nothing in it has been seen yet.
TEST(CheckpointActivations, LayersAreComputedAgainInBackward) {
  const NormScheme scheme = find_scheme("lp");
  const DecoderLm model = language_model(scheme, Kernels::composite, true);
  Counter counter;
  const Batch windows = batch(2);
  const Tensor loss = model.loss(windows.inputs, windows.targets, {.training = true, .observer = &counter});
  const size_t outside = counter.seen.size();
  EXPECT_EQ(outside, 2U);  // the stream after the last layer, the logits
  loss.backward();
  EXPECT_GT(counter.seen.size(), outside);
  const torch::NoGradGuard no_grad;  // nothing to keep: as always
  Counter at_once;
  model.loss(windows.inputs, windows.targets, {.observer = &at_once});
  EXPECT_EQ(at_once.seen, counter.seen);
}

}  // namespace
}  // namespace normlab
