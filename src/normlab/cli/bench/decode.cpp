// normlab bench decode: text made token by token with a cache of keys and values, ours on both paths and PyTorch's.
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/bench/peer.h"
#include "normlab/cli/signals.h"
#include "normlab/config/flops.h"
#include "normlab/infer/sample.h"

namespace normlab {
namespace {

constexpr int prompt_tokens = 16, new_tokens = 200;

// Two operations for each weight and token, and for each channel of each visible key and value. Every new token but
// the last is read again.
double flops_of_text(const ModelConfig& model) {
  const double read = prompt_tokens + new_tokens - 1, visible = read * (read + 1.0) / 2.0;
  return 2.0 * matrix_entries(model, bench_vocab_size) * read +
         4.0 * model.n_layers * model.n_heads * model.d_head * visible;
}

Contender contender(const std::string& config, const std::string& scheme, const std::string& path,
                    const std::string& python) {
  const bool peer_path = path == "torch-eager";
  if (peer_path && python.empty())
    throw UsageError("--path", concat(path, " needs --peer PYTHON, a Python that can import torch."));
  Config wanted = bench_config(config, scheme, peer_path ? "composite" : path);
  // A window that holds the whole text: otherwise the cache would be filled anew in between.
  wanted.model.seq_len = std::max(wanted.model.seq_len, prompt_tokens + new_tokens);
  Contender one;
  one.row = {.config = config,
             .scheme = scheme_label(scheme, wanted.norm),
             .path = path,
             .flops = flops_of_text(wanted.model),
             .tokens = new_tokens};
  if (peer_path) {
    const auto peer = std::make_shared<Peer>(python, wanted, /*compile=*/false, at::get_num_threads());
    one.run = [peer] { return peer->generate(prompt_tokens, new_tokens); };
    return one;
  }
  const auto model = std::make_shared<DecoderLm>(wanted.model, wanted.norm, bench_vocab_size, /*seed=*/1);
  one.run = [model] {
    const SampleOptions greedy{.max_tokens = new_tokens, .temperature = 0.0};
    return timed([&] {
      generate(*model, random_tokens(prompt_tokens, /*stream=*/1), greedy, [](int64_t) { return !stop_requested(); });
    });
  };
  return one;
}

Exit bench_decode(BenchOptions options, const std::string& python) {
  options.threads = decoding_threads(options.threads);
  use_threads(options.threads);
  if (options.configs.empty()) options.configs = {"L", "S"};
  if (options.schemes.empty()) options.schemes = {"none", "lp:2.5"};
  if (options.paths.empty()) {
    options.paths = {"fused", "composite"};
    if (!python.empty()) options.paths.emplace_back("torch-eager");
  }
  Bench bench("decode", options);
  for (const std::string& config : options.configs) {
    std::vector<Contender> contenders;
    for (const std::string& scheme : options.schemes)
      for (const std::string& path : options.paths) contenders.push_back(contender(config, scheme, path, python));
    bench.measure(std::move(contenders));
    if (stop_requested()) break;
  }
  return bench.report("bench step");
}

}  // namespace

void add_bench_decode(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("decode", "generation speed in tokens/s: 16 prompt tokens, 200 new ones");
  auto options = std::make_shared<BenchOptions>();
  options->add_configs_to(*verb);
  options->add_to(*verb, {"fused", "composite", "torch-eager"});
  auto python = std::make_shared<std::string>();
  verb->add_option("--peer", *python, "a Python that can import torch: adds the path torch-eager, with a static cache")
      ->type_name("PYTHON");
  verb->footer(
      "Default schemes: none lp:2.5; one thread, as generate uses. The window is made long enough for all 216 tokens.\n"
      "Examples:\n"
      "  normlab bench decode --config L --scheme none lp:3 --threads 2\n"
      "  normlab bench decode --config S --peer python3");
  verb->callback([options, python, &exit] { exit = bench_decode(*options, *python); });
}

}  // namespace normlab
