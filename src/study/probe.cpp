#include "study/probe.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "stats/summary.h"
#include "train/flops.h"
#include "train/stepper.h"

namespace normlab {
namespace {

constexpr int warm_ups = 2, n_steps = 10;

std::vector<double> seconds_of_steps(const Config& config, int vocab_size) {
  using Clock = std::chrono::steady_clock;
  const int64_t b = config.train.batch_size, t = config.model.seq_len;
  const auto tokens = torch::arange(b * t + 1, torch::kInt64).remainder(vocab_size);
  const std::vector<Batch> batches(
      static_cast<size_t>(config.train.accumulate),
      {.inputs = tokens.slice(0, 0, b * t).view({b, t}), .targets = tokens.slice(0, 1, b * t + 1).view({b, t})});
  Stepper stepper(DecoderLm(config.model, config.norm, vocab_size, /*seed=*/1), {});
  std::vector<double> seconds;
  for (int i = 0; i < warm_ups + n_steps; ++i) {
    const auto start = Clock::now();
    stepper.step(batches, {.training = true, .seed = 1, .step = i}, config.optim.min_lr, config.optim.clip);
    if (i >= warm_ups) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

}  // namespace

Probe probe_speed(const Config& config, int vocab_size, int jobs) {
  at::set_num_threads(std::max(1, config.train.threads));
  std::vector<std::vector<double>> seconds(static_cast<size_t>(jobs));
  std::vector<std::exception_ptr> failures(seconds.size());
  std::vector<std::thread> threads;
  for (size_t job = 0; job < seconds.size(); ++job)
    threads.emplace_back([&, job] {
      try {
        seconds[job] = seconds_of_steps(config, vocab_size);
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
  Probe probe{.seconds_of_step = median(all)};
  probe.flops_per_second = flops_of_step(config, vocab_size) / probe.seconds_of_step;
  return probe;
}

}  // namespace normlab
