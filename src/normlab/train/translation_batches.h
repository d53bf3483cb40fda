// Batches of a translator: which pairs pass number i of a run reads, and their tensors.
#pragma once

#include "normlab/config/config.h"
#include "normlab/data/pair_batch.h"
#include "normlab/data/translation_data.h"
#include "normlab/models/encoder_decoder.h"

namespace normlab {

class TranslationBatches {
 public:
  TranslationBatches(const Config& config, const TranslationData& data);

  // Pass number `index` of the run, a pure function of seed and index: its pairs, their segmentation under BPE dropout,
  // the words that became unknown.
  TranslationBatch at(int64_t index, TranslationData& data);

  // Pairs as they are, for evaluation, in batches of about as many tokens.
  std::vector<TranslationBatch> all(const ParallelText& text, TranslationData& data) const;

 private:
  void cut(EncodedPair& pair) const;
  TranslationBatch make(const std::vector<EncodedPair>& pairs, uint64_t word_dropout_key) const;
  const PairBatch& pairs_of(int64_t index);

  TranslationConfig config_;
  size_t max_tokens_;
  PairBatchPlan plan_;
  std::vector<PairLengths> lengths_;
  OutputVocabulary outputs_;
  torch::TensorOptions tokens_;
  int64_t epoch_ = -1, first_index_ = 0;  // of `batches_`
  std::vector<PairBatch> batches_;
};

}  // namespace normlab
