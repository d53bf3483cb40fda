// normlab bench study: training steps of several processes in parallel, one thread each, as a study runs its trials.
#include <ATen/Parallel.h>

#include <iostream>
#include <memory>
#include <thread>

#include "normlab/base/signals.h"
#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/bench/peer.h"
#include "normlab/cli/bench/step_runner.h"
#include "normlab/config/flops.h"

namespace normlab {
namespace {

constexpr double flops_of_a_turn = 2e10;  // of each process: some tenths of a second, long against the start of a turn

struct StudyOptions {
  BenchOptions bench;
  std::string peer;
  int jobs = 0;
  bool serve = false;  // what this program starts itself with: answers questions as bench/peer.py does
};

// Processes that all train the same model at the same time.
class Crew {
 public:
  Crew(int jobs, const std::function<std::unique_ptr<Peer>()>& hire) {
    for (int i = 0; i < jobs && !stop_requested(); ++i) crew_.push_back(hire());
  }

  // Seconds until the last has done its steps.
  double run(int steps) {
    return timed([&] {
      for (auto& one : crew_) one->start_steps(steps);
      for (auto& one : crew_) one->finish_steps();
    });
  }

 private:
  std::vector<std::unique_ptr<Peer>> crew_;
};

Contender contender(const StudyOptions& options, const std::string& config, const std::string& scheme,
                    const std::string& path) {
  const bool torch_peer = path.starts_with("torch-");
  if (torch_peer && options.peer.empty())
    throw UsageError("--path", concat(path, " needs --peer PYTHON, a Python that can import torch."));
  const Config model = bench_config(config, scheme, torch_peer ? "composite" : path);
  const auto hire = [&] {
    return torch_peer ? std::make_unique<Peer>(options.peer, model, path == "torch-compile", /*threads=*/1)
                      : std::make_unique<Peer>(own_server(config, scheme, path));
  };
  auto crew = std::make_shared<Crew>(options.jobs, hire);
  const double flops = flops_of_step(model, bench_vocab_size);
  const int steps = std::max(1, static_cast<int>(flops_of_a_turn / flops));  // the same for every path
  Contender one;
  one.row = {.config = config,
             .scheme = scheme_label(scheme, model.norm),
             .path = path,
             .flops = options.jobs * steps * flops};
  one.run = [crew, steps] { return crew->run(steps); };
  return one;
}

// Answers as bench/peer.py: {"cmd": "step", "count": n} -> {"seconds": s}.
Exit serve(const BenchOptions& chosen) {
  const std::string scheme = chosen.schemes.empty() ? "" : chosen.schemes.front();
  StepRunner runner(bench_config(chosen.configs.at(0), scheme, chosen.paths.at(0)));
  for (std::string line; std::getline(std::cin, line);) {
    const auto question = nlohmann::json::parse(line);
    const double seconds = timed([&] {
      for (int i = 0; i < question.value("count", 1); ++i) runner.step();
    });
    std::cout << nlohmann::json{{"seconds", seconds}}.dump() << std::endl;
  }
  return Exit::done;
}

Exit bench_study(StudyOptions options) {
  BenchOptions& chosen = options.bench;
  use_threads(options.serve ? 1 : chosen.threads);
  if (options.serve) return serve(chosen);
  options.jobs = at::get_num_threads();
  if (chosen.configs.empty()) chosen.configs = {"S"};
  if (chosen.schemes.empty()) chosen.schemes = {"none", "lp:2.5"};
  if (chosen.paths.empty()) {
    chosen.paths = {"fused", "composite"};
    if (!options.peer.empty()) chosen.paths.push_back("torch-eager");
  }
  Bench bench("study", chosen);
  for (const std::string& config : chosen.configs) {
    std::vector<Contender> contenders;
    for (const std::string& scheme : chosen.schemes)
      for (const std::string& path : chosen.paths)
        if (!stop_requested()) contenders.push_back(contender(options, config, scheme, path));
    bench.measure(std::move(contenders));
    if (stop_requested()) break;
  }
  return bench.report("compare --config recipes/lp-shakespeare-quick.toml --out studies/quick");
}

}  // namespace

void add_bench_study(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("study", "trials in parallel, each a process with one thread");
  auto options = std::make_shared<StudyOptions>();
  options->bench.add_configs_to(*verb);
  options->bench.add_to(*verb, {"fused", "composite", "torch-eager", "torch-compile"});
  verb->add_option("--peer", options->peer, "a Python that can import torch: adds the path torch-eager")
      ->type_name("PYTHON");
  verb->add_flag("--serve", options->serve)->group("");
  verb->footer(
      "As many processes as --threads says, all cores by default. A repetition is 20 GFLOP of steps of each.\n"
      "Default: config S, schemes none and lp:2.5.\n"
      "Example:\n"
      "  normlab bench study --config recipes/shakespeare-cpu.toml --peer python3");
  verb->callback([options, &exit] { exit = bench_study(*options); });
}

}  // namespace normlab
