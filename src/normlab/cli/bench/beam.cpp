// normlab bench beam: sentences translated by beam search, with our kernels, PyTorch's operators, and CTranslate2.
#include <algorithm>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/child_process.h"
#include "normlab/data/text_lines.h"
#include "normlab/models/translate.h"
#include "normlab/train/checkpoint.h"

namespace normlab {
namespace {

using nlohmann::ordered_json;

struct BeamBenchOptions {
  BenchOptions bench;
  std::string run, input, python = "python3", peer = "bench/ctranslate2_peer.py";
  int sentences = 0, batch = 64;
};

struct Work {
  LoadedTranslator loaded;
  std::vector<std::string> lines;
  size_t batch = 64;
  int64_t symbols = 0;  // made by one repetition
};

// Two operations for each weight that a symbol of a hypothesis is multiplied with; attention is left out.
double flops_of_symbol(const LoadedTranslator& loaded) {
  const ModelConfig& c = loaded.config.model;
  const double d = c.d_model, per_layer = 6.0 * d * d + 2.0 * d * c.d_ff;
  const auto outputs = loaded.vocabulary.outputs();
  const auto n = static_cast<double>(std::count(outputs.begin(), outputs.end(), true));
  return 2.0 * (c.n_layers * per_layer + d * n) * loaded.config.translation.beam;
}

LoadedTranslator load_with(const std::string& run, const std::string& path) {
  LoadedTranslator loaded = load_translator(run);
  loaded.config.model.kernels = path == "fused" ? Kernels::fused : Kernels::composite;
  loaded.model = make_translator(loaded.config, loaded.vocabulary.size(), 0);
  load_weights(loaded.folder, loaded.model);
  return loaded;
}

std::vector<TranslatedLine> translate_all(Work& work) {
  const TranslationConfig& config = work.loaded.config.translation;
  return translate_lines(work.loaded.model, work.loaded.vocabulary, work.lines, {config.beam, config.length_penalty},
                         work.batch);
}

Contender contender(const std::shared_ptr<Work>& work, const std::string& path, const std::string& label) {
  Contender one;
  one.row = {.config = label,
             .scheme = work->loaded.config.norm.name,
             .path = path,
             .flops = flops_of_symbol(work->loaded) * static_cast<double>(work->symbols),
             .tokens = work->symbols};
  one.run = [work] { return timed([&] { translate_all(*work); }); };
  return one;
}

ordered_json ask(ChildProcess& process, const ordered_json& question) {
  process.write_line(question.dump());
  const auto line = process.read_line();
  if (!line) return {};  // a request to stop
  const ordered_json answer = ordered_json::parse(*line, nullptr, false);
  if (!answer.is_object() || answer.contains("error"))
    throw Error("bench beam",
                concat("CTranslate2's script says: ", answer.is_object() ? answer["error"].dump() : *line));
  return answer;
}

// A model of the same shape and random weights in CTranslate2; it makes as many symbols of each sentence as ours.
Contender peer(const BeamBenchOptions& options, const std::shared_ptr<Work>& work, const ordered_json& lengths,
               const std::string& label) {
  const ModelConfig& c = work->loaded.config.model;
  const auto outputs = work->loaded.vocabulary.outputs();
  auto process = std::make_shared<ChildProcess>(std::vector<std::string>{options.python, options.peer});
  ask(*process, {{"cmd", "build"},
                 {"encoder_layers", work->loaded.config.translation.encoder_layers},
                 {"decoder_layers", c.n_layers},
                 {"heads", c.n_heads},
                 {"d_model", c.d_model},
                 {"d_ff", c.d_ff},
                 {"source_vocab", work->loaded.vocabulary.size()},
                 {"target_vocab", std::count(outputs.begin(), outputs.end(), true)},
                 {"threads", options.bench.threads},
                 {"beam", work->loaded.config.translation.beam},
                 {"batch", work->batch},
                 {"lengths", lengths}});
  Contender one = contender(work, "ctranslate2", label);
  one.run = [process] { return ask(*process, {{"cmd", "translate"}}).value("seconds", 0.0); };
  return one;
}

Exit bench_beam(BeamBenchOptions options) {
  use_threads(options.bench.threads);
  std::vector<std::string>& paths = options.bench.paths;
  if (paths.empty()) paths = {"fused", "composite"};
  std::vector<std::string> lines = read_lines(options.input);
  if (options.sentences > 0 && lines.size() > static_cast<size_t>(options.sentences))
    lines.resize(static_cast<size_t>(options.sentences));
  const std::string label = concat(lines.size(), " lines");
  Bench bench("beam", options.bench);
  std::vector<Contender> contenders;
  ordered_json lengths = ordered_json::array();
  int64_t symbols = 0;
  for (const std::string& path : paths) {
    const bool ours = path != "ctranslate2";
    auto work = std::make_shared<Work>(
        Work{load_with(options.run, ours ? path : "fused"), lines, static_cast<size_t>(options.batch)});
    if (symbols == 0) {  // counted once, by the first path
      const auto out = translate_all(*work);
      for (size_t i = 0; i < out.size(); ++i) {
        const auto source = static_cast<int64_t>(work->loaded.vocabulary.encode(Side::source, lines[i]).size()) + 1;
        const int64_t made = out[i].alternatives.empty() ? 0 : out[i].alternatives.front().symbols;
        if (made > 0) lengths.push_back({source, made});
        symbols += made;
      }
    }
    work->symbols = symbols;
    contenders.push_back(ours ? contender(work, path, label) : peer(options, work, lengths, label));
  }
  bench.measure(std::move(contenders));
  return bench.report("translate RUN");
}

}  // namespace

void add_bench_beam(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("beam", "speed of beam search over a text, in symbols/s");
  auto options = std::make_shared<BeamBenchOptions>();
  verb->add_option("--run", options->run, "run or checkpoint of a translator")->required()->type_name("DIR");
  verb->add_option("--input", options->input, "lines to translate")->required()->type_name("FILE");
  verb->add_option("--sentences", options->sentences, "number of lines to use; 0 = all")->check(whole_number(0));
  verb->add_option("--batch", options->batch, "lines per batch, default 64")->check(whole_number(1, 4096));
  verb->add_option("--python", options->python, "a Python with CTranslate2, for its path")->type_name("PROGRAM");
  verb->add_option("--peer", options->peer, "the script that runs CTranslate2, default bench/ctranslate2_peer.py")
      ->type_name("FILE");
  options->bench.add_measuring_to(*verb, {"fused", "composite", "ctranslate2"});
  verb->footer(
      "Example:\n"
      "  normlab bench beam --run runs/gl-en --input test.gl --threads 1 --path fused composite");
  verb->callback([options, &exit] { exit = bench_beam(*options); });
}

}  // namespace normlab
