// Every scheme on the simulated device: training, resume, evaluation, generation, beam search, probes, inspection. The
// test crashes where host code touches memory of the device.
#include "normlab/models/device.h"

#include <gtest/gtest.h>

#include <csignal>

#include "devices/device_runs.h"
#include "normlab/config/load_data.h"
#include "normlab/infer/sample.h"
#include "normlab/infer/sample_translation.h"
#include "normlab/probe/inspection.h"
#include "normlab/train/average.h"
#include "normlab/train/evaluate.h"
#include "normlab/train/translation_batches.h"

namespace normlab {
namespace {

using torch::Tensor;

class SimulatedDevice : public DeviceRuns {
 protected:
  LoadedModel load(const std::string& name, const std::string& device) const {
    return load_model(folder_ / name, {.device = device});
  }
};

Figures readings_of(const Inspection& found) {
  Figures out;
  for (const Reading& each : found.readings) out[name_of(each)] = each.value;
  for (const EntropyFloor& each : found.floors)
    out[concat("floor ", name_of(each.place.stack), each.place.layer, each.place.head)] = each.value;
  for (const Spectrum& each : found.spectra)
    out[concat("spectrum ", name_of(each.place.stack), each.place.layer, each.place.head)] = each.values.front();
  out["loss"] = found.loss;
  return out;
}

std::vector<int64_t> generated(const DecoderLm& model, double temperature) {
  std::vector<int64_t> tokens;
  const SampleOptions options{.max_tokens = 20, .temperature = temperature, .top_k = 5, .top_p = 0.9, .seed = 3};
  generate(model, std::vector<int64_t>{1, 2, 3}, options, [&](int64_t token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

TEST_F(SimulatedDevice, HostCodeThatReadsItsMemoryDies) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const Tensor x = torch::ones({3}).to(torch::Device(simulated_device));
        std::exit(static_cast<int>(x.data_ptr<float>()[0]));
      },
      testing::KilledBySignal(SIGSEGV), "");
}

// A read put back where there was one: the weights of a loss as the fused kernel reads them.
TEST_F(SimulatedDevice, AnOperatorThatReadsItsMemoryDies) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Config config = *config_of(simulated_device, {});
  EXPECT_EXIT(
      {
        const DecoderLm model(config.model, config.norm, 20, 1, tensor_options(config));
        const Tensor logits = model.logits(torch::zeros({1, 4}, torch::kInt64), Pass{}).detach();
        std::exit(logits.const_data_ptr<float>()[0] > 0.0F ? 1 : 0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(SimulatedDevice, StartsFromTheWeightsOfTheCpu) {
  for (const NormScheme& scheme : catalogue()) {
    const Config here = *config_of("cpu", {"norm.scheme=" + scheme.name}),
                 there = *config_of(simulated_device, {"norm.scheme=" + scheme.name});
    DecoderLm one(here.model, here.norm, 30, 7), other(there.model, there.norm, 30, 7, tensor_options(there));
    const NamedTensors mine = one.state(), theirs = other.state();
    ASSERT_EQ(mine.size(), theirs.size());
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(theirs[i].second.device().str(), simulated_device);
      EXPECT_TRUE(mine[i].second.equal(theirs[i].second.cpu())) << scheme.name << " " << mine[i].first;
    }
  }
}

TEST_F(SimulatedDevice, TrainsEveryScheme) {
  for (const NormScheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    const Words settings = {"norm.scheme=" + scheme.name};
    expect_close(train(*config_of("cpu", settings), scheme.name + "-cpu"),
                 train_twice(*config_of(simulated_device, settings), scheme.name));
    EXPECT_EQ(stored_config(folder_ / scheme.name / "config.toml").train.device, simulated_device);
    EXPECT_NE(read_file(folder_ / scheme.name / "manifest.json").find(simulated_device), std::string::npos);

    LoadedModel here = load(scheme.name, "cpu"), there = load(scheme.name, simulated_device);
    EXPECT_EQ(there.model.device().str(), simulated_device);
    EXPECT_EQ(there.config.model.kernels, Kernels::composite);
    EXPECT_EQ(generated(there.model, 0.0), generated(here.model, 0.0));
    EXPECT_EQ(generated(there.model, 0.8), generated(here.model, 0.8));
    const Tensor inputs = torch::arange(32, torch::kInt64).remainder(20).view({2, 16});
    expect_close(readings_of(inspect(here.model, inputs, inputs)), readings_of(inspect(there.model, inputs, inputs)));
    const auto maps = attention_maps(there.model, inputs.slice(0, 0, 1)),
               expected = attention_maps(here.model, inputs.slice(0, 0, 1));
    ASSERT_EQ(maps.size(), expected.size());
    EXPECT_NEAR(maps.back().weights.back().front(), expected.back().weights.back().front(), rounding);
  }
}

TEST_F(SimulatedDevice, TrainsTranslatorsOfEveryScheme) {
  int translators = 0;
  for (const NormScheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    const Words settings = {"norm.scheme=" + scheme.name};
    const auto here = config_of("cpu", settings, true), there = config_of(simulated_device, settings, true);
    if (!here) continue;  // not for translators
    ++translators;
    expect_close(train(*here, scheme.name + "-cpu"), train_twice(*there, scheme.name));
    EXPECT_EQ(read_file(folder_ / scheme.name / "translations/dev.en"),
              read_file(folder_ / (scheme.name + "-cpu") / "translations/dev.en"));
  }
  EXPECT_GT(translators, 10);
  LoadedTranslator one = load_translator(folder_ / "qknorm"),
                   other = load_translator(folder_ / "qknorm", {.device = simulated_device});
  const SampleOptions drawn{.temperature = 0.7, .seed = 5};
  EXPECT_EQ(sample_translation(one.model, one.vocabulary, "o rei", drawn, 0).alternatives.front().text,
            sample_translation(other.model, other.vocabulary, "o rei", drawn, 0).alternatives.front().text);
  TranslationData data = load_pairs(one.config);
  const auto pairs = TranslationBatches(one.config, data).all({{"o rei, falou 3"}, {"the king, spoke 3"}}, data);
  expect_close(readings_of(inspect(one.model, pairs)), readings_of(inspect(other.model, pairs)));
  EXPECT_EQ(attention_maps(other.model, pairs.front()).size(), attention_maps(one.model, pairs.front()).size());
  load_average(folder_ / "qknorm", 1, other.model);
}

TEST_F(SimulatedDevice, ResumesBitExactlyAndFromAnotherDevice) {
  for (const char* optimizer : {"adamw", "muon"}) {
    const Words settings = {"norm.scheme=lp", concat("optim.optimizer=", optimizer)};
    const auto halfway = [&](const std::string& device, const std::string& name) {
      Config config = *config_of(device, settings);
      config.train.max_steps = 2;
      train(config, name);
    };
    const std::string name = optimizer;
    const Figures whole = train(*config_of(simulated_device, settings), name + "-whole");
    halfway(simulated_device, name + "-same");
    expect_close(whole, train(*config_of(simulated_device, settings), name + "-same", true), 0.0);
    halfway("cpu", name + "-there");
    expect_close(whole, train(*config_of(simulated_device, settings), name + "-there", true));
    halfway(simulated_device, name + "-back");
    expect_close(whole, train(*config_of("cpu", settings), name + "-back", true));
  }
}

// Loss and norm are read in one copy, however many passes a step has.
TEST_F(SimulatedDevice, AStepWaitsOnce) {
  for (const char* settings : {"optim.optimizer=adamw", "optim.optimizer=muon", "norm.scheme=ngpt", "norm.scheme=ssmax",
                               "norm.scheme=sigma-reparam", "model.checkpoint_activations=true"}) {
    const Config config = *config_of(simulated_device, {settings, "model.dropout=0.1"});
    Stepper stepper(DecoderLm(config.model, config.norm, 20, 1, tensor_options(config)),
                    optimizer_settings(config.optim));
    const Tensor tokens = torch::arange(33, torch::kInt64).remainder(20);
    const Batch batch{tokens.slice(0, 0, 32).view({2, 16}), tokens.slice(0, 1, 33).view({2, 16})};
    const int64_t before = reads_by_host();
    for (int64_t step = 0; step < 3; ++step)
      stepper.step({batch, batch}, {.training = true, .step = 2 * step}, 1e-2, 1.0);
    EXPECT_EQ(reads_by_host() - before, 3) << settings;
  }
}

TEST_F(SimulatedDevice, TrainsWithOtherSettings) {
  for (const Words& settings :
       {Words{"model.checkpoint_activations=true"}, Words{"model.dropout=0.1", "optim.optimizer=muon"},
        Words{"norm.scheme=lp", "norm.learn_p=true", "norm.p_sharing=head"}, Words{"train.only=gains"},
        Words{"model.positions=sinusoidal", "model.bias=true", "model.tied_head=false"}}) {
    const std::string name = join(settings, "-");
    SCOPED_TRACE(name);
    expect_close(train(*config_of("cpu", settings), name + "-cpu"),
                 train(*config_of(simulated_device, settings), name));
  }
}

TEST_F(SimulatedDevice, NamesTheFirstBadTensor) {
  const auto run = open(*config_of(simulated_device, {"optim.lr=1e30", "optim.warmup_steps=0"}), "bad");
  EXPECT_EQ(run->run(), Outcome::diverged);
  EXPECT_FALSE(run->culprit().empty());
}

TEST(Device, ThatIsMissingIsAUsageError) {
  EXPECT_EQ(find_device("cpu").str(), "cpu");
  EXPECT_EQ(find_device("privateuseone").str(), simulated_device);
  for (const char* name : {"privateuseone:3", "cuda:99", "tpu"}) try {
      find_device(name);
      ADD_FAILURE() << name;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace normlab
