// normlab translate: standard input to standard output, line by line.
#include <memory>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/line_reader.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/data/detokenizer.h"
#include "normlab/data/utf8.h"
#include "normlab/infer/sample_translation.h"
#include "normlab/models/weights.h"
#include "normlab/train/average.h"
#include "normlab/train/checkpoint.h"

namespace normlab {
namespace {

constexpr size_t longest_word = 200;  // in characters; a longer one is read as several, since no language has it

struct TranslateOptions {
  std::string run, detokenize, device = "auto";
  int beam = 0, n_best = 1, batch = 64, threads = 0, average = 0;
  double length_penalty = -1.0;
  bool allow_nonfinite = false;
  SampleOptions sample{.temperature = 0.0};  // above 0: drawn, not searched for
};

// Bytes that are not UTF-8 become U+FFFD, control characters spaces.
std::string clean(const std::string& line) {
  std::string out;
  size_t word = 0;
  for_each_code_point(line, [&](char32_t c, size_t) {
    const bool control = c < U' ' || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029;
    word = control || c == U' ' ? 0 : word + 1;
    if (word > longest_word) out += ' ', word = 1;
    append_utf8(out, control ? U' ' : c);
  });
  return out;
}

class LineTranslator {
 public:
  explicit LineTranslator(const TranslateOptions& options)
      : options_(options), loaded_(load_translator(options.run, {options.allow_nonfinite, options.device})) {
    if (options.average > 0) {
      load_average(options.run, static_cast<size_t>(options.average), loaded_.model);
      if (!options.allow_nonfinite) require_finite(options.run, loaded_.model.state());
    }
    const TranslationConfig& config = loaded_.config.translation;
    beam_ = {options.beam > 0 ? options.beam : config.beam,
             options.length_penalty >= 0.0 ? options.length_penalty : config.length_penalty, stop_requested};
    if (options.n_best > beam_.beam)
      throw UsageError("--n-best", concat("got ", options.n_best, ", expected at most the beam, ", beam_.beam, "."));
  }

  // False when a signal asks to stop.
  bool translate(const std::vector<std::string>& lines) {
    std::vector<std::string> cleaned;
    for (const std::string& line : lines) cleaned.push_back(clean(line));
    for (const TranslatedLine& each : translated(cleaned)) {
      ++line_;
      if (each.tokens_left_out > 0)
        log_line(concat("line ", line_, " is too long: its last ", each.tokens_left_out,
                        " subwords were left out; the model reads ", loaded_.config.model.seq_len, " (model.seq_len)"));
      print(each);
    }
    return !stop_requested();
  }

 private:
  std::vector<TranslatedLine> translated(const std::vector<std::string>& lines) {
    if (options_.sample.temperature <= 0.0)
      return translate_lines(loaded_.model, loaded_.vocabulary, lines, beam_, static_cast<size_t>(options_.batch));
    std::vector<TranslatedLine> out;
    for (const std::string& line : lines) {
      const auto number = line_ + static_cast<int64_t>(out.size());
      out.push_back(sample_translation(loaded_.model, loaded_.vocabulary, line, options_.sample, number));
    }
    return out;
  }

  void print(const TranslatedLine& line) const {
    const auto text = [&](const std::string& words) {
      return options_.detokenize.empty() ? words : detokenize(words, options_.detokenize);
    };
    std::string out;
    if (options_.n_best == 1) out = (line.alternatives.empty() ? "" : text(line.alternatives.front().text)) + "\n";
    for (size_t i = 0; options_.n_best > 1 && i < static_cast<size_t>(options_.n_best); ++i) {
      const bool there = i < line.alternatives.size();
      out += concat(line_, "\t", there ? fixed(line.alternatives[i].score, 6) : "0.000000", "\t",
                    there ? text(line.alternatives[i].text) : "", "\n");
    }
    write_output(out);
  }

  TranslateOptions options_;
  LoadedTranslator loaded_;
  BeamOptions beam_;
  int64_t line_ = 0;
};

Exit translate(const TranslateOptions& options) {
  use_threads(decoding_threads(options.threads));
  LineTranslator translator(options);
  LineReader reader;
  // A few batches at a time, so that lines of similar length can go together.
  const size_t lines_at_once = 16 * static_cast<size_t>(options.batch);
  while (true) {
    const std::vector<std::string> lines = reader.read(lines_at_once);
    if (lines.empty() || !translator.translate(lines)) break;
  }
  return stop_requested() ? Exit::stopped : Exit::done;
}

}  // namespace

void add_translate(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "translate");
  auto options = std::make_shared<TranslateOptions>();
  SampleOptions& sample = options->sample;
  verb->add_option("run,--run", options->run, "run or checkpoint of a translator")->required()->type_name("DIR");
  verb->add_option("--average", options->average, "average the run's last N checkpoints (train.keep_last)")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  verb->add_option("--beam", options->beam, "hypotheses of the search, 1 is greedy; default: the run's")
      ->check(whole_number(1, 1000));
  verb->add_option("--length-penalty", options->length_penalty, "exponent, 0 is none; default: the run's")
      ->check(number_between(0, 10));
  verb->add_option("--n-best", options->n_best, "translations per line, as number, score and text separated by tabs")
      ->check(whole_number(1, 1000));
  verb->add_option("--batch", options->batch, "lines per batch, default 64; changes only the speed")
      ->check(whole_number(1, 4096));
  verb->add_option("--temperature", sample.temperature, "above 0: sample translations instead of searching")
      ->check(number_between(0, 100));
  verb->add_option("--top-k", sample.top_k, "sample from the k most probable subwords; 0 = all")
      ->check(whole_number(0));
  verb->add_option("--seed", sample.seed, "of the draws")->check(whole_number(0));
  verb->add_option("--detokenize", options->detokenize,
                   "undo Moses tokenisation with the rules of this language, such as en")
      ->type_name("LANGUAGE");
  verb->add_option("--threads", options->threads, "threads; default: one, which is fastest for a step at a time")
      ->check(whole_number(0));
  add_device(*verb, options->device);
  add_allow_nonfinite(*verb, options->allow_nonfinite);
  verb->footer(
      "Empty lines stay empty; bytes that are not UTF-8 are read as U+FFFD, control characters as spaces.\n"
      "Examples:\n"
      "  normlab translate runs/gl-en < test.gl > test.out\n"
      "  normlab translate runs/gl-en --beam 8 --n-best 4 --detokenize en < test.gl");
  verb->callback([options, &exit] { exit = translate(*options); });
}

}  // namespace normlab
