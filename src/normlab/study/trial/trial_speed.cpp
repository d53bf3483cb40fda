#include "normlab/study/trial/trial_speed.h"

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "normlab/config/flops.h"
#include "normlab/models/device.h"
#include "normlab/stats/summary.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/stepper.h"

namespace normlab {
namespace {

constexpr int warm_ups = 2, n_steps = 10;
constexpr double patience = 1.5;     // seconds; a large model makes fewer steps
constexpr double most_flops = 2e10;  // of a step

// Speed is per operation, and the answer is wanted within seconds: a step of a large model is measured with a smaller
// batch, and if need be fewer layers.
Config measured_config(Config config, int vocab_size) {
  config.train.accumulate = 1;
  const auto halve = [&](int& value) {
    while (value > 1 && flops_of_step(config, vocab_size) > most_flops) value = (value + 1) / 2;
  };
  int batch_tokens = static_cast<int>(config.translation.batch_tokens);
  while (config.translation.wanted() && batch_tokens > 64 && flops_of_step(config, vocab_size) > most_flops)
    config.translation.batch_tokens = batch_tokens /= 2;
  halve(config.train.batch_size);
  halve(config.model.n_layers);
  return config;
}

template <class AnyStepper, class AnyBatch>
std::vector<double> seconds_of_steps(AnyStepper& stepper, const std::vector<AnyBatch>& batches, const Config& config) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<double> seconds;
  const auto begin = Clock::now();
  for (int i = 0; i < warm_ups + n_steps && (seconds.empty() || since(begin) < patience); ++i) {
    const auto start = Clock::now();
    const bool warm = i >= warm_ups || since(begin) > patience / 3;
    stepper.step(batches, {.training = true, .seed = 1, .step = i}, config.optim.min_lr, config.optim.clip);
    if (warm) seconds.push_back(since(start));
  }
  return seconds;
}

// Sentences of a usual length, all alike.
std::vector<double> seconds_of_translation(Config config, int vocab_size) {
  constexpr int64_t length = 32;
  if (config.translation.length_p975 == 0) config.translation.length_p975 = 2 * length;
  const int64_t b = std::max<int64_t>(1, config.translation.batch_tokens / length);
  const auto tokens = torch::arange(b * length, torch::kInt64).remainder(vocab_size).view({b, length});
  TranslationBatch batch;
  batch.source = {tokens, torch::full({b}, length, torch::kInt64)};
  batch.inputs_bt = batch.labels_bt = tokens;
  batch.outputs = make_output_vocabulary(std::vector<bool>(static_cast<size_t>(vocab_size), true));
  TranslationStepper stepper(make_translator(config, vocab_size, /*seed=*/1), optimizer_settings(config.optim));
  return seconds_of_steps(stepper, std::vector(static_cast<size_t>(config.train.accumulate), batch), config);
}

std::vector<double> seconds_of_run(const Config& config, int vocab_size) {
  if (config.translation.wanted()) return seconds_of_translation(config, vocab_size);
  const int64_t b = config.train.batch_size, t = config.model.seq_len;
  const auto tokens = torch::arange(b * t + 1, torch::kInt64).remainder(vocab_size);
  const std::vector<Batch> batches(
      static_cast<size_t>(config.train.accumulate),
      {.inputs = tokens.slice(0, 0, b * t).view({b, t}), .targets = tokens.slice(0, 1, b * t + 1).view({b, t})});
  Stepper stepper(DecoderLm(config.model, config.norm, vocab_size, /*seed=*/1, tensor_options(config)),
                  optimizer_settings(config.optim));
  return seconds_of_steps(stepper, batches, config);
}

}  // namespace

TrialSpeed trial_speed(const Config& config, int vocab_size, int jobs) {
  Config measured = measured_config(config, vocab_size);
  settle_device(measured, measured.train.device);
  std::vector<std::vector<double>> seconds(static_cast<size_t>(jobs));
  std::vector<std::exception_ptr> failures(seconds.size());
  std::vector<std::thread> threads;
  for (size_t job = 0; job < seconds.size(); ++job)
    threads.emplace_back([&, job] {
      try {
        seconds[job] = seconds_of_run(measured, vocab_size);
      } catch (...) {
        failures[job] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (size_t job = 0; job < seconds.size(); ++job) {
    if (failures[job]) std::rethrow_exception(failures[job]);
    all.insert(all.end(), seconds[job].begin(), seconds[job].end());
  }
  TrialSpeed speed{.flops_per_second = flops_of_step(measured, vocab_size) / median(all)};
  speed.seconds_of_step = flops_of_step(config, vocab_size) / speed.flops_per_second;
  return speed;
}

}  // namespace normlab
