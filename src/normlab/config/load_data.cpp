#include "normlab/config/load_data.h"

#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"
#include "normlab/data/dataset.h"
#include "normlab/record/run_dir.h"

namespace normlab {

namespace {

std::string tokenizer_kind(const Config& config) {
  return enum_names<TokenUnit>()[static_cast<size_t>(config.data.tokenizer)];
}

// The tokenizer of the checkpoint that training starts from.
Tokenizer tokenizer_of(const std::filesystem::path& start) {
  std::filesystem::path folder = start;
  if (!std::filesystem::exists(folder / "tokenizer.json")) {
    const RunDir run = RunDir::open(start);
    const auto checkpoint = run.best() ? run.best() : run.latest();
    if (!checkpoint) throw DataError(start.string(), "is a run without a checkpoint yet.");
    folder = checkpoint->path;
  }
  const nlohmann::json content = parse_json(read_file(folder / "tokenizer.json"));
  if (!content.is_object()) throw DataError((folder / "tokenizer.json").string(), "is not JSON: it is damaged.");
  return Tokenizer::from_json(content);
}

// The tokenizer that does not follow from the text; none for characters and bytes.
std::optional<Tokenizer> given_tokenizer(const Config& config) {
  if (!config.train.start.empty()) return tokenizer_of(config.train.start);
  if (config.data.tokenizer != TokenUnit::subwords) return std::nullopt;
  if (config.data.tokenizer_file.empty())
    throw UsageError("data.tokenizer_file", "is empty; data.tokenizer=subword needs the path of a tokenizer.json.");
  const Tokenizer tokenizer = Tokenizer::read_subwords(config.data.tokenizer_file);
  return config.data.vocab_size > 0 ? tokenizer.with_vocab_size(config.data.vocab_size) : tokenizer;
}

}  // namespace

TextForm form_of(const Config& config, const StopToken& stop) {
  return {.field = config.data.field,
          .separator = config.data.separator,
          .in_memory = int64_t{config.data.memory_mb} << 20,
          .vocab_size = config.data.vocab_size,
          .stop = stop};
}

Corpus load_text(const Config& config, const StopToken& stop) {
  const std::filesystem::path path = find_dataset(config.data.source);
  const std::optional<Tokenizer> given = given_tokenizer(config);
  const TextForm form = form_of(config, stop);
  Corpus corpus = given ? load_corpus(path, *given, form) : load_corpus(path, tokenizer_kind(config), form);
  const DataConfig defaults;
  if (corpus.held_out > 0 && (config.data.folds != defaults.folds || config.data.fold != defaults.fold))
    throw UsageError("data.fold", concat("val.bin is held out of ", path.string(), ", so there are no folds; got fold ",
                                         config.data.fold, " of ", config.data.folds,
                                         ". Leave data.fold and data.folds out, "
                                         "or give one file, such as train.bin."));
  if (!given && config.data.vocab_size > 0 && corpus.tokenizer.kind() != TokenizerKind::ids)
    throw UsageError("data.vocab_size", concat("is of subwords and token files; got ", config.data.vocab_size,
                                               ", expected 0 for characters and bytes."));
  require_windows(split_of(corpus, config.data.folds, config.data.fold), config.model.seq_len);
  return corpus;
}

int64_t guess_held_out(const Config& config) {
  const std::filesystem::path path = find_dataset(config.data.source);
  constexpr int64_t bytes_per_id = 2;
  if (std::filesystem::is_directory(path))
    return static_cast<int64_t>(std::filesystem::file_size(path / "val.bin")) / bytes_per_id;
  return static_cast<int64_t>(std::filesystem::file_size(path)) / config.data.folds;
}

CorpusSize measure_text(const Config& config) {
  if (config.translation.wanted()) {
    const VocabularySize vocabulary = measure_vocabulary(files_of(config));
    return {.vocab_size = vocabulary.size, .estimated = vocabulary.estimated};
  }
  const std::optional<Tokenizer> given = given_tokenizer(config);
  const CorpusSize size = measure_corpus(find_dataset(config.data.source), tokenizer_kind(config),
                                         given ? &*given : nullptr, form_of(config));
  require_windows(make_split(size.tokens, config.data.folds, config.data.fold), config.model.seq_len);
  return size;
}

TranslationFiles files_of(const Config& config) {
  const TranslationConfig& c = config.translation;
  return {.folder = config.data.source,
          .source = c.source,
          .target = c.target,
          .train = c.train,
          .dev = c.dev,
          .test = c.test,
          .folds = config.data.folds,
          .fold = config.data.fold,
          .vocabulary = {.operations = c.bpe_operations, .min_frequency = c.min_frequency},
          .sentencepiece = c.sentencepiece,
          .max_tokens = config.model.seq_len};
}

TranslationData load_pairs(const Config& config) { return load_translation_data(files_of(config)); }

}  // namespace normlab
