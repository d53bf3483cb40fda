#include "normlab/config/load_data.h"

#include "normlab/data/dataset.h"

namespace normlab {

namespace {

std::string tokenizer_kind(const Config& config) {
  return enum_names<TokenUnit>()[static_cast<size_t>(config.data.tokenizer)];
}

}  // namespace

Corpus load_text(const Config& config) {
  Corpus corpus = load_corpus(find_dataset(config.data.source), tokenizer_kind(config));
  require_windows(make_split(static_cast<int64_t>(corpus.tokens.size()), config.data.folds, config.data.fold),
                  config.model.seq_len);
  return corpus;
}

CorpusSize measure_text(const Config& config) {
  if (config.translation.wanted()) {
    const VocabularySize vocabulary = measure_vocabulary(files_of(config));
    return {.vocab_size = vocabulary.size, .estimated = vocabulary.estimated};
  }
  const CorpusSize size = measure_corpus(find_dataset(config.data.source), tokenizer_kind(config));
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
