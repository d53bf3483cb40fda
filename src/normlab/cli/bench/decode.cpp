// normlab bench decode: text made token by token with a cache of keys and values, ours on both paths, PyTorch's and
// CTranslate2's.
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

struct DecodeBenchOptions {
  BenchOptions bench;
  std::string python;
  int batch = 1;
};

// Two operations for each weight and token, and for each channel of each visible key and value. Every new token but
// the last is read again.
double flops_of_text(const ModelConfig& model) {
  const double read = prompt_tokens + new_tokens - 1, visible = read * (read + 1.0) / 2.0;
  return 2.0 * matrix_entries(model, bench_vocab_size) * read +
         4.0 * model.n_layers * model.n_heads * model.d_head * visible;
}

std::function<double()> peer_run(const std::string& path, const Config& config, const DecodeBenchOptions& options) {
  const int threads = at::get_num_threads();
  const std::shared_ptr<Peer> peer = path == "ctranslate2"
                                         ? Peer::ctranslate2(options.python, config, threads)
                                         : std::make_unique<Peer>(options.python, config, /*compile=*/false, threads);
  return [peer, texts = options.batch] { return peer->generate(prompt_tokens, new_tokens, texts); };
}

std::function<double()> own_run(const Config& config, int texts) {
  const auto make = std::make_shared<Generator>(DecoderLm(config.model, config.norm, bench_vocab_size, /*seed=*/1));
  return [make, texts] {
    const SampleOptions greedy{.max_tokens = new_tokens, .temperature = 0.0};
    const std::vector prompts(static_cast<size_t>(texts), random_tokens(prompt_tokens, /*stream=*/1));
    return timed([&] { (*make)(prompts, greedy, [](size_t, int64_t) { return !stop_requested(); }); });
  };
}

Contender contender(const std::string& config, const std::string& scheme, const std::string& path,
                    const DecodeBenchOptions& options) {
  const bool peer_path = path == "torch-eager" || path == "ctranslate2";
  if (peer_path && options.python.empty())
    throw UsageError("--path", concat(path, " needs --peer PYTHON, a Python that has it."));
  Config wanted = bench_config(config, scheme, peer_path ? "composite" : path);
  // A window that holds the whole text: otherwise the cache would be filled anew in between.
  wanted.model.seq_len = std::max(wanted.model.seq_len, prompt_tokens + new_tokens);
  Contender one;
  one.row = {.config = config,
             .scheme = scheme_label(scheme, wanted.norm),
             .path = path,
             .flops = options.batch * flops_of_text(wanted.model),
             .tokens = int64_t{options.batch} * new_tokens,
             .weight_bytes = static_cast<int64_t>(sizeof(float) * matrix_entries(wanted.model, bench_vocab_size)),
             .weight_reads = new_tokens};
  one.run = peer_path ? peer_run(path, wanted, options) : own_run(wanted, options.batch);
  return one;
}

// Whether a peer cannot run because its package is missing; that leaves out its rows, unless they were asked for.
bool is_missing(const Error& error) {
  return std::string_view(error.what()).find("ModuleNotFoundError") != std::string_view::npos;
}

Exit bench_decode(DecodeBenchOptions all) {
  BenchOptions& options = all.bench;
  options.threads = decoding_threads(options.threads);
  use_threads(options.threads);
  if (options.configs.empty()) options.configs = {"L", "S"};
  if (options.schemes.empty()) options.schemes = {"none", "lp:2.5"};
  const bool chosen = !options.paths.empty();
  if (!chosen) {
    options.paths = {"fused", "composite"};
    if (!all.python.empty()) options.paths.insert(options.paths.end(), {"torch-eager", "ctranslate2"});
  }
  Bench bench("decode", options);
  for (const std::string& config : options.configs) {
    std::vector<Contender> contenders;
    for (const std::string& scheme : options.schemes)
      for (const std::string& path : options.paths) {
        if (path == "ctranslate2" && scheme != options.schemes.front()) continue;  // knows one model
        try {
          contenders.push_back(contender(config, scheme, path, all));
        } catch (const Error& error) {
          if (chosen || !is_missing(error)) throw;
          log_line(concat("skipped ", path, " at ", config, " ", scheme, ": ", error.what()));
        }
      }
    bench.measure(std::move(contenders));
    if (stop_requested()) break;
  }
  return bench.report("bench step");
}

}  // namespace

void add_bench_decode(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("decode", "generation speed in tokens/s: 16 prompt tokens, 200 new ones");
  auto options = std::make_shared<DecodeBenchOptions>();
  options->bench.add_configs_to(*verb);
  options->bench.add_to(*verb, {"fused", "composite", "torch-eager", "ctranslate2"});
  verb->add_option("--batch", options->batch, "texts side by side, default 1")->check(whole_number(1, 4096));
  verb->add_option("--peer", options->python,
                   "a Python with torch or CTranslate2: adds the paths torch-eager, with a static cache, and "
                   "ctranslate2, a GPT-2 of the same size")
      ->type_name("PYTHON");
  verb->footer(
      "Default schemes: none lp:2.5; one thread, as generate uses. The window is made long enough for all 216 tokens.\n"
      "Examples:\n"
      "  normlab bench decode --config L --scheme none lp:3 --threads 2\n"
      "  normlab bench decode --config S --peer python3");
  verb->callback([options, &exit] { exit = bench_decode(*options); });
}

}  // namespace normlab
