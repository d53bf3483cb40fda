// The section [translation] of a configuration.
#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"
#include "normlab/data/score_tokenizer.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<PairBatching>() {
  return {std::begin(pair_batchings), std::end(pair_batchings)};
}
template <>
std::vector<std::string> enum_names<BleuWords>() {
  std::vector<std::string> names;
  for (const ScoreTokenizer& row : score_tokenizers) names.push_back(row.name);
  return names;
}

namespace {

constexpr const char* of_translators = "translation.source!=";

}  // namespace

void list_fields(TranslationConfig& c, FieldList& list) {
  list.section("translation");
  list.text("source", c.source, "source language, the suffix of its files; set with target to train a translator")
      .is_shared_in_studies();
  list.text("target", c.target, "target language, the suffix of its files").is_shared_in_studies();
  list.text("train", c.train, "prefix of the training files").read_if(of_translators);
  list.text("dev", c.dev, "prefix of the development files; empty = the pairs of data.fold are held out")
      .is_shared_in_studies()
      .read_if(of_translators);
  list.text("test", c.test, "prefix of the files translated at the end; empty = none")
      .affects(Effect::measure)
      .is_shared_in_studies()
      .read_if(of_translators);
  list.integer("encoder_layers", c.encoder_layers, {.min = 0, .max = 1000}, "blocks of the encoder; 0 = n_layers")
      .read_if(of_translators);
  list.integer("length_p975", c.length_p975, {.min = 0, .max = 1 << 24},
               "L of the initial gain; 0 = 97.5th percentile of the training text")
      .filled_from_data()
      .read_if(of_translators)
      .read_if("norm.gain!=none and norm.gain_init=log2(L^2-L)|matched");
  list.integer("bpe_operations", c.bpe_operations, {.min = 0, .max = 1 << 24},
               "byte pair merges learned from both languages; 0 = the text is already segmented")
      .read_if(of_translators)
      .read_if("translation.sentencepiece=");
  list.text("sentencepiece", c.sentencepiece,
            "a SentencePiece model of both languages in place of merges; empty = none")
      .read_if(of_translators);
  list.integer("min_frequency", c.min_frequency, {.min = 1}, "lowest frequency of a subword in its language")
      .read_if(of_translators);
  list.real("bpe_dropout", c.bpe_dropout, {.min = 0.0, .max = 1.0}, "share of merges skipped in training, at random")
      .read_if(of_translators)
      .read_if("translation.sentencepiece= and translation.bpe_operations>0");
  list.integer("batch_tokens", c.batch_tokens, {.min = 1, .max = 1 << 24},
               "largest number of pairs in a batch times their longest side")
      .read_if(of_translators);
  list.choice("batching", c.batching, "fixed: grouped once by length, in random order; bucketed: regrouped every epoch")
      .read_if(of_translators);
  list.real("word_dropout", c.word_dropout, {.min = 0.0, .max = 0.99},
            "share of input subwords replaced by the unknown symbol")
      .read_if(of_translators);
  list.real("label_smoothing", c.label_smoothing, {.min = 0.0, .max = 0.99},
            "share of the target distribution spread over all subwords")
      .read_if(of_translators);
  list.integer("beam", c.beam, {.min = 1, .max = 1000}, "hypotheses of the search")
      .affects(Effect::measure)
      .trains("train.early_stop>0 or optim.schedule=plateau")
      .read_if(of_translators);
  list.real("length_penalty", c.length_penalty, {.min = 0.0, .max = 10.0}, "exponent of the length penalty")
      .affects(Effect::measure)
      .trains("train.early_stop>0 or optim.schedule=plateau")
      .read_if(of_translators);
  list.choice("bleu", c.bleu, "tokenisation of BLEU, by sacreBLEU's name; none for tokenised text")
      .is_shared_in_studies()
      .affects(Effect::measure)
      .trains("train.early_stop>0 or optim.schedule=plateau")
      .read_if(of_translators);
}

void check_translation(const TranslationConfig& c, const NormScheme& norm, const OptimConfig& optim) {
  if (const std::string reason = why_no_translator(norm); c.wanted() && !reason.empty())
    throw UsageError("norm.scheme", concat("not supported in a translator: ", reason, ". Choose another scheme."));
  if (c.wanted() && (c.source.empty() || c.target.empty()))
    throw UsageError(c.source.empty() ? "translation.source" : "translation.target",
                     "is empty. A translator needs both languages.");
  if (c.wanted() && c.source == c.target)
    throw UsageError("translation.target", concat("got ", c.target, " for both languages. Name two."));
  if (!c.sentencepiece.empty() && c.bpe_dropout > 0.0)
    throw UsageError("translation.bpe_dropout", "a SentencePiece model has no merges to skip. Set it to 0.");
  if (!c.wanted() && optim.schedule == ScheduleKind::plateau)
    throw UsageError("optim.schedule", "plateau needs BLEU, which only translators have. Choose another.");
}

}  // namespace normlab
