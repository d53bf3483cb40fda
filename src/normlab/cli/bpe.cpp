// normlab bpe: learn and apply byte pair encoding, of words or of bytes.
#include <memory>

#include "normlab/base/file.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/bpe_tokens.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/verbs.h"
#include "normlab/data/bpe_learn.h"
#include "normlab/data/byte_bpe_learn.h"
#include "normlab/data/text_lines.h"

namespace normlab {
namespace {

struct LearnOptions {
  std::vector<std::string> inputs, vocabularies;
  std::string codes;
  BpeLearning learning;
  bool bytes = false;
};

struct ApplyOptions {
  std::string input = "-", output = "-", codes, vocabulary;
  int64_t threshold = 1;
  double dropout = 0;
  uint64_t seed = 0;
};

Exit learn_bytes(const LearnOptions& options) {
  if (!options.vocabularies.empty())
    throw UsageError("--write-vocabulary", "does not go with --bytes: the tokenizer.json holds the vocabulary.");
  std::vector<std::string> texts;
  for (const std::string& path : options.inputs) texts.push_back(read_text_file(path));
  ProgressLine progress;
  const std::string file = learn_tokenizer_json(texts, options.learning, [&](int merges) {
    if (merges % 100 == 0) progress.update(concat("merges ", merges, " of ", options.learning.operations));
    if (stop_requested()) throw Error("bpe learn", "stopped by a signal; nothing was written.", Exit::stopped);
  });
  progress.finish();
  write_file_atomically(options.codes, file);
  log_line(concat("tokenizer in ", options.codes, "\nnext: ",
                  own_command({"train", "--set", "data.tokenizer=subword", "--set",
                               concat("data.tokenizer_file=", options.codes), "--out", "RUN"})));
  return Exit::done;
}

Exit learn(const LearnOptions& options) {
  if (options.bytes) return learn_bytes(options);
  if (!options.vocabularies.empty() && options.vocabularies.size() != options.inputs.size())
    throw UsageError("--write-vocabulary", concat("got ", options.vocabularies.size(), " files for ",
                                                  options.inputs.size(), " texts, expected one for each."));
  std::vector<std::string> texts;
  WordCounts words;
  for (const std::string& path : options.inputs)
    for (const std::string_view line : bpe_lines(texts.emplace_back(read_text_file(path)))) words.add_line(line);
  if (words.rows().empty()) throw DataError(options.inputs[0], "has no words to learn from.");

  ProgressLine progress;
  const BpeCodes codes = learn_bpe(words, options.learning, [&](int merges) {
    if (merges % 100 == 0) progress.update(concat("merges ", merges, " of ", options.learning.operations));
    if (stop_requested()) throw Error("bpe learn", "stopped by a signal; nothing was written.", Exit::stopped);
  });
  progress.finish();
  if (codes.empty())
    throw DataError(options.inputs[0], concat("no pair of symbols occurs ", options.learning.min_frequency,
                                              " times. Use more text or a smaller --min-frequency."));
  std::vector<std::string> vocabularies;
  BpeSegmenter segmenter(codes);
  for (size_t i = 0; i < options.vocabularies.size(); ++i) {
    WordCounts subwords;
    for (const std::string_view line : bpe_lines(texts[i])) subwords.add_line(segmenter.segment_line(line));
    vocabularies.push_back(subwords.to_text());
  }
  write_file_atomically(options.codes, to_text(codes));
  for (size_t i = 0; i < vocabularies.size(); ++i) write_file_atomically(options.vocabularies[i], vocabularies[i]);
  const std::string shortfall = codes.size() < static_cast<size_t>(options.learning.operations)
                                    ? concat(": no further pair occurs ", options.learning.min_frequency, " times")
                                    : "";
  log_line(concat(codes.size(), " merges of ", words.rows().size(), " different words in ", options.codes, shortfall));
  return Exit::done;
}

Exit apply(const ApplyOptions& options) {
  constexpr uint64_t dropout_stream = 0x627065;  // "bpe": keeps these draws apart from other streams of the seed
  const BpeCodes codes = read_bpe_codes(options.codes);
  BpeSegmenter segmenter(
      codes, options.vocabulary.empty() ? BpeVocabulary() : read_bpe_vocabulary(options.vocabulary, options.threshold));
  const std::string text = read_text_file(options.input == "-" ? "/dev/stdin" : options.input);
  const std::vector<std::string_view> lines = bpe_lines(text);
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const BpeDropout dropout{.rate = options.dropout, .key = stream_key(options.seed, dropout_stream, i)};
    out += segmenter.segment_line(lines[i], dropout);
  }
  if (options.output == "-")
    write_output(out);
  else
    write_file_atomically(options.output, out);
  return Exit::done;
}

void add_learn(CLI::App& verb, Exit& exit) {
  auto* learn_verb =
      verb.add_subcommand("learn", "learn joint codes from one or more texts, or a byte-level tokenizer.json");
  auto options = std::make_shared<LearnOptions>();
  learn_verb->add_option("-i,--input", options->inputs, "texts of all languages, plain or gzip")
      ->required()
      ->type_name("FILE");
  learn_verb
      ->add_option("-o,--codes", options->codes, "file of the codes to write; with --bytes, of the tokenizer.json")
      ->required()
      ->type_name("FILE");
  learn_verb->add_option("-s,--operations", options->learning.operations, "merges to learn, default 8000")
      ->check(whole_number(1, 10'000'000))
      ->type_name("N");
  learn_verb->add_option("--min-frequency", options->learning.min_frequency, "stop at pairs that are rarer, default 2")
      ->check(whole_number(1))
      ->type_name("N");
  learn_verb
      ->add_option("--write-vocabulary", options->vocabularies,
                   "files for the subwords of each text, to use as a filter")
      ->type_name("FILE");
  learn_verb->add_flag("--bytes", options->bytes, "byte-level BPE, as a tokenizer.json for language models");
  learn_verb->footer(
      "Examples:\n  normlab bpe learn --bytes --input my.txt --operations 4000 --codes tokenizer.json\n  normlab bpe "
      "learn --input train.gl train.en --operations 8000 --codes codes "
      "--write-vocabulary vocab.gl vocab.en");
  learn_verb->callback([options, &exit] { exit = learn(*options); });
}

void add_apply(CLI::App& verb, Exit& exit) {
  auto* apply_verb = verb.add_subcommand("apply", "segment a text with learned codes");
  auto options = std::make_shared<ApplyOptions>();
  apply_verb->add_option("-c,--codes", options->codes, "file of codes")->required()->type_name("FILE");
  apply_verb->add_option("-i,--input", options->input, "text, plain or gzip; default: standard input")
      ->type_name("FILE");
  apply_verb->add_option("-o,--output", options->output, "default: standard output")->type_name("FILE");
  apply_verb->add_option("--vocabulary", options->vocabulary, "split subwords that are not in this file")
      ->type_name("FILE");
  apply_verb->add_option("--threshold", options->threshold, "or that occur in it less often than this, default 1")
      ->check(whole_number(1))
      ->type_name("N");
  apply_verb->add_option("--dropout", options->dropout, "skip each merge with this probability, for training text")
      ->check(number_between(0, 1))
      ->type_name("P");
  apply_verb->add_option("--seed", options->seed, "of dropout, default 0")->check(whole_number(0));
  apply_verb->footer(
      "Example:\n  normlab bpe apply --codes codes --vocabulary vocab.gl --threshold 5 < train.gl > train.bpe.gl");
  apply_verb->callback([options, &exit] { exit = apply(*options); });
}

}  // namespace

void add_bpe(CLI::App& app, Exit& exit) {
  auto* verb =
      app.add_subcommand("bpe", "learn and apply byte pair encoding, as subword-nmt or as tokenizer.json does it");
  verb->require_subcommand(1);
  add_learn(*verb, exit);
  add_apply(*verb, exit);
  add_bpe_encode(*verb, exit);
  add_bpe_decode(*verb, exit);
  verb->footer(
      "Examples:\n  normlab bpe learn --input train.gl train.en --codes codes --write-vocabulary vocab.gl vocab.en\n"
      "  normlab bpe apply --codes codes --vocabulary vocab.gl --threshold 5 < train.gl > train.bpe.gl\n"
      "  normlab bpe learn --bytes --input my.txt --codes tokenizer.json\n"
      "  normlab bpe encode --tokenizer tokenizer.json < my.txt");
}

}  // namespace normlab
