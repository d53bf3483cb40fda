// normlab bench step: one training step, ours on both paths and PyTorch's, side by side.
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/bench/peer.h"
#include "normlab/cli/bench/step_runner.h"
#include "normlab/cli/signals.h"
#include "normlab/config/flops.h"

namespace normlab {
namespace {

struct StepOptions {
  BenchOptions bench;
  std::string peer;
  bool memory = false;
  bool print_memory = false;  // what --memory starts this program with
};

// Bytes of this process, now (VmRSS) or at most (VmHWM). Not getrusage: its maximum survives exec and so would count
// the parent's size.
int64_t process_bytes(const std::string& key) {
  for (const std::string& line : split(read_file("/proc/self/status"), '\n'))
    if (line.starts_with(key + ":"))
      return 1024 * parse_integer(split(trim(line.substr(key.size() + 1)), ' ')[0]).value_or(0);
  return 0;
}

// The kernels of a path, and its optimiser.
Config step_config(const std::string& config, const std::string& scheme, const std::string& path) {
  Config chosen = bench_config(config, scheme, path.starts_with("fused") ? "fused" : path);
  if (path == "fused-muon") chosen.optim.optimizer = OptimizerKind::muon;
  return chosen;
}

int64_t memory_of_steps(const Config& config) {
  const int64_t before = process_bytes("VmRSS");
  StepRunner runner(config);
  for (int i = 0; i < 2; ++i) runner.step();
  return process_bytes("VmHWM") - before;
}

Contender our_contender(const StepOptions& options, const std::string& config, const std::string& scheme,
                        const std::string& path) {
  using Watch = StepRunner::Watch;
  const Watch watch = path == "fused-stats"   ? Watch::statistics
                      : path == "fused-probe" ? Watch::everything
                                              : Watch::nothing;
  const bool watched = watch != Watch::nothing;
  const Config model = step_config(config, scheme, path);
  auto runner = std::make_shared<StepRunner>(model, watch);
  Contender one;
  one.row = {.config = config,
             .scheme = scheme_label(scheme, model.norm),
             .path = path,
             .flops = flops_of_step(model, bench_vocab_size)};
  one.run = [runner] { return timed([&] { runner->step(); }); };
  if (options.memory)
    one.finish = [=](BenchRow& row) {
      row.peak_bytes = memory_of_steps_elsewhere(config, scheme, watched ? "fused" : path);
    };
  return one;
}

Contender torch_contender(const StepOptions& options, const std::string& config, const std::string& scheme,
                          const std::string& path) {
  if (options.peer.empty())
    throw UsageError("--path", concat(path, " needs --peer PYTHON, a Python that can import torch."));
  const Config model = bench_config(config, scheme, "composite");
  auto peer = std::make_shared<Peer>(options.peer, model, path == "torch-compile", at::get_num_threads());
  Contender one;
  one.row = {.config = config,
             .scheme = scheme_label(scheme, model.norm),
             .path = path,
             .flops = flops_of_step(model, bench_vocab_size)};
  one.run = [peer] { return peer->step(); };
  if (options.memory) one.finish = [peer](BenchRow& row) { row.peak_bytes = peer->peak_bytes(); };
  return one;
}

std::vector<Contender> contenders_of(const StepOptions& options, const std::string& config) {
  std::vector<Contender> all;
  for (const std::string& scheme : options.bench.schemes)
    for (const std::string& path : options.bench.paths) {
      if (stop_requested()) return all;
      const auto make = path.starts_with("torch-") ? torch_contender : our_contender;
      all.push_back(make(options, config, scheme, path));
    }
  return all;
}

// A recipe has a scheme of its own.
std::vector<std::string> default_schemes(const std::string& config) {
  if (config == "L" || config == "S") return {"none", "lp:2.5"};
  return {""};
}

Exit bench_step(StepOptions options) {
  use_threads(options.bench.threads);
  BenchOptions& chosen = options.bench;
  if (options.print_memory) {
    const std::string scheme = chosen.schemes.empty() ? "" : chosen.schemes.front();
    print_line(concat(memory_of_steps(step_config(chosen.configs.at(0), scheme, chosen.paths.at(0)))));
    return Exit::done;
  }
  if (chosen.configs.empty()) chosen.configs = {"L", "S"};
  if (chosen.paths.empty()) {
    chosen.paths = {"fused", "composite"};
    if (!options.peer.empty()) chosen.paths.insert(chosen.paths.end(), {"torch-eager", "torch-compile"});
  }
  const bool schemes_chosen = !chosen.schemes.empty();
  Bench bench("step", chosen);
  for (const std::string& config : chosen.configs) {
    if (!schemes_chosen) chosen.schemes = default_schemes(config);
    bench.measure(contenders_of(options, config));
    if (stop_requested()) break;
  }
  return bench.report("bench attention");
}

}  // namespace

std::optional<int64_t> memory_of_steps_elsewhere(const std::string& config, const std::string& scheme,
                                                 const std::string& path) {
  std::vector<std::string> command = {
      "/proc/self/exe", "bench",  "step", "--print-memory", "--config",
      config,           "--path", path,   "--threads",      concat(at::get_num_threads())};
  if (!scheme.empty()) command.insert(command.end(), {"--scheme", scheme});
  ChildProcess child(command);
  const auto answer = child.read_line();
  return answer ? parse_integer(*answer) : std::nullopt;
}

void add_bench_step(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("step", "one training step: forward, backward, clip, update");
  auto options = std::make_shared<StepOptions>();
  options->bench.add_configs_to(*verb);
  options->bench.add_to(
      *verb, {"fused", "fused-stats", "fused-probe", "fused-muon", "composite", "torch-eager", "torch-compile"});
  verb->add_option("--peer", options->peer,
                   "a Python that can import torch: adds the paths torch-eager and torch-compile")
      ->type_name("PYTHON");
  verb->add_flag("--memory", options->memory, "also measure the peak memory of a step, each row in a separate process");
  verb->add_flag("--print-memory", options->print_memory)->group("");
  verb->footer(
      "L: 6 layers, 6 heads, width 384, window 256, batch 16. S: 4 layers, 4 heads, width 128, window 64, batch 12.\n"
      "fused-stats: with statistics of attention; fused-probe: with everything that probe.every=1 measures.\n"
      "fused-muon: with Muon in place of AdamW.\n"
      "Without --scheme L and S run none and lp:2.5, and a recipe its own; --scheme replaces a recipe's [norm].\n"
      "Examples:\n"
      "  normlab bench step --config L --scheme none qknorm lp:1 lp:inf --path fused\n"
      "  normlab bench step --config S --peer python3 --json\n"
      "  normlab bench step --config recipes/shakespeare-cpu.toml --memory");
  verb->callback([options, &exit] { exit = bench_step(*options); });
}

}  // namespace normlab
