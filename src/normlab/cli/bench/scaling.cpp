// normlab bench scaling: how time and memory of a training step grow with length, width, depth and batch, and the time
// of trials with their number.
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/bench/peer.h"
#include "normlab/cli/bench/step_runner.h"
#include "normlab/cli/signals.h"
#include "normlab/config/flops.h"

namespace normlab {
namespace {

struct ScalingOptions {
  BenchOptions bench;
  std::vector<std::string> axes;
};

// One size of the model is varied, the others stay as they are here.
struct ScaledModel {
  int length = 128, width = 128, depth = 2, batch = 8;

  std::string toml() const {
    return concat("[model]\nn_layers = ", depth, "\nn_heads = ", width / 32, "\nd_model = ", width,
                  "\nseq_len = ", length, "\n[train]\nbatch_size = ", batch, "\n");
  }
};
struct ScalingAxis {
  const char* name;
  int ScaledModel::*size;  // null: the number of trials
  std::vector<int> values;
};
const std::vector<ScalingAxis>& scaling_axes() {
  static const std::vector<ScalingAxis> all = {
      {"length", &ScaledModel::length, {64, 128, 256, 512, 1024, 2048}},
      {"width", &ScaledModel::width, {64, 128, 256, 512}},
      {"depth", &ScaledModel::depth, {1, 2, 4, 8}},
      {"batch", &ScaledModel::batch, {2, 4, 8, 16, 32}},
      {"trials", nullptr, {1, 2, 4, 8}},
  };
  return all;
}

// Steps of so many processes at once, each with one thread.
std::function<double()> trials_of(const std::string& config, const std::string& scheme, const std::string& path,
                                  int trials) {
  auto crew = std::make_shared<std::vector<std::unique_ptr<Peer>>>();
  for (int i = 0; i < trials && !stop_requested(); ++i)
    crew->push_back(std::make_unique<Peer>(own_server(config, scheme, path)));
  return [crew] {
    return timed([&] {
      for (auto& one : *crew) one->start_steps(1);
      for (auto& one : *crew) one->finish_steps();
    });
  };
}

Contender scaling_contender(const ScalingAxis& axis, int value, const std::string& scheme, const std::string& path) {
  ScaledModel shape;
  if (axis.size) shape.*axis.size = value;
  const std::string text = shape.toml();
  const Config model = bench_config(text, scheme, path);
  Contender one;
  one.row = {.config = concat(axis.name, "=", value),
             .scheme = scheme_label(scheme, model.norm),
             .path = path,
             .flops = flops_of_step(model, bench_vocab_size) * (axis.size ? 1 : value)};
  if (!axis.size) {
    one.run = trials_of(text, scheme, path, value);
    return one;
  }
  auto runner = std::make_shared<StepRunner>(model);
  one.run = [runner] { return timed([&] { runner->step(); }); };
  one.finish = [=](BenchRow& row) { row.peak_bytes = memory_of_steps_elsewhere(text, scheme, path); };
  return one;
}

Exit bench_scaling(ScalingOptions options) {
  use_threads(options.bench.threads);
  if (options.bench.schemes.empty()) options.bench.schemes = {"lp:2.5"};
  if (options.bench.paths.empty()) options.bench.paths = {"fused"};
  Bench bench("scaling", options.bench);
  const auto measure = [&](const ScalingAxis& axis, const std::string& scheme, const std::string& path) {
    std::vector<Contender> contenders;
    std::vector<double> values;
    for (const int value : axis.values) {
      if (stop_requested()) return;
      contenders.push_back(scaling_contender(axis, value, scheme, path));
      values.push_back(value);
    }
    bench.measure(std::move(contenders));
    bench.fit_growth(values);
  };
  const std::vector<std::string>& chosen = options.axes;
  for (const ScalingAxis& axis : scaling_axes())
    if (chosen.empty() || std::find(chosen.begin(), chosen.end(), axis.name) != chosen.end())
      for (const std::string& scheme : options.bench.schemes)
        for (const std::string& path : options.bench.paths) measure(axis, scheme, path);
  return bench.report("bench study");
}

}  // namespace

void add_bench_scaling(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("scaling", "growth of time and memory with length, width, depth, batch and trials");
  auto options = std::make_shared<ScalingOptions>();
  std::vector<std::string> names;
  for (const ScalingAxis& axis : scaling_axes()) names.emplace_back(axis.name);
  verb->add_option("--axis", options->axes, concat("one or more of ", join(names, ", "), "; default: all"))
      ->check(CLI::IsMember(names))
      ->type_name("AXIS");
  options->bench.add_to(*verb, {"fused", "composite"});
  verb->footer(
      "A step of a model of 2 layers, width 128, heads of 32, 128 tokens and batch 8, of which one size is varied;\n"
      "trials: that step in so many processes at once, one thread each. The last row of a size has the exponents\n"
      "that fit its rows best: of time, of the operations, which is what time should grow with, and of memory.\n"
      "Default: scheme lp:2.5, path fused.\n"
      "Example:\n"
      "  normlab bench scaling --axis length batch");
  verb->callback([options, &exit] { exit = bench_scaling(*options); });
}

}  // namespace normlab
