#include "normlab/train/translation_batches.h"

#include <algorithm>

#include "normlab/models/device.h"

namespace normlab {
namespace {

constexpr uint64_t word_stream = 0x776f7264,
                   bpe_stream = 0x627065;  // "word", "bpe": apart from other draws of the seed

PairLengths lengths_of(const EncodedPair& pair) {
  return {static_cast<int64_t>(pair.source.size()), static_cast<int64_t>(pair.target.size()) + 1};
}

}  // namespace

TranslationBatches::TranslationBatches(const Config& config, const TranslationData& data)
    : config_(config.translation),
      max_tokens_(static_cast<size_t>(config.model.seq_len)),
      plan_{.seed = static_cast<uint64_t>(config.train.seed),
            .tokens_per_batch = config_.batch_tokens,
            .batching = config_.batching},
      outputs_(make_output_vocabulary(data.vocabulary.outputs())),
      tokens_(host_tokens(find_device(config.train.device))) {
  for (const EncodedPair& pair : data.train) lengths_.push_back(lengths_of(pair));
}

const PairBatch& TranslationBatches::pairs_of(int64_t index) {
  if (index < first_index_) epoch_ = -1, first_index_ = 0, batches_.clear();
  while (index >= first_index_ + static_cast<int64_t>(batches_.size())) {
    first_index_ += static_cast<int64_t>(batches_.size());
    batches_ = pair_batches(lengths_, plan_, ++epoch_);
  }
  return batches_[static_cast<size_t>(index - first_index_)];
}

TranslationBatch TranslationBatches::at(int64_t index, TranslationData& data) {
  std::vector<EncodedPair> pairs;
  for (const size_t number : pairs_of(index)) {
    if (config_.bpe_dropout > 0.0)
      pairs.push_back(encode_pair(data.vocabulary, data.train_source[number], data.train_target[number],
                                  {config_.bpe_dropout, stream_key(plan_.seed, bpe_stream, epoch_, number)}));
    else
      pairs.push_back(data.train[number]);
    cut(pairs.back());
  }
  return make(pairs, stream_key(plan_.seed, word_stream, index));
}

std::vector<TranslationBatch> TranslationBatches::all(const ParallelText& text, TranslationData& data) const {
  std::vector<EncodedPair> pairs;
  std::vector<PairLengths> lengths;
  for (size_t i = 0; i < text.source.size(); ++i) {
    pairs.push_back(encode_pair(data.vocabulary, text.source[i], text.target[i]));
    cut(pairs.back());
    lengths.push_back(lengths_of(pairs.back()));
  }
  PairBatchPlan plan = plan_;
  plan.batching = PairBatching::fixed;
  std::vector<TranslationBatch> batches;
  for (const PairBatch& numbers : pair_batches(lengths, plan, /*epoch=*/0)) {
    std::vector<EncodedPair> part;
    for (const size_t number : numbers) part.push_back(pairs[number]);
    batches.push_back(make(part, 0));
  }
  return batches;
}

// BPE dropout makes sentences longer, and a development text has what it has.
void TranslationBatches::cut(EncodedPair& pair) const {
  if (pair.source.size() > max_tokens_) pair.source.resize(max_tokens_), pair.source.back() = PairVocabulary::end;
  if (pair.target.size() + 1 > max_tokens_) pair.target.resize(max_tokens_ - 1);
}

// A key of 0 leaves the words as they are.
TranslationBatch TranslationBatches::make(const std::vector<EncodedPair>& pairs, uint64_t key) const {
  int64_t s = 0, t = 0;
  for (const EncodedPair& pair : pairs)
    s = std::max(s, lengths_of(pair).source), t = std::max(t, lengths_of(pair).target);
  const auto b = static_cast<int64_t>(pairs.size());
  const auto padded = [&](int64_t length, int64_t value) { return torch::full({b, length}, value, tokens_); };
  TranslationBatch batch{.source = {padded(s, PairVocabulary::padding), torch::empty({b}, tokens_)},
                         .inputs_bt = padded(t, PairVocabulary::padding),
                         .labels_bt = padded(t, -1),
                         .outputs = outputs_};
  const int64_t* place = outputs_.place_v.const_data_ptr<int64_t>();
  uint64_t draws = 0;
  const auto dropped = [&](int64_t token) {
    const bool drop = key != 0 && config_.word_dropout > 0.0 && draw_uniform(key, draws++) < config_.word_dropout;
    return drop ? int64_t{PairVocabulary::unknown} : token;
  };
  for (int64_t i = 0; i < b; ++i) {
    const EncodedPair& pair = pairs[static_cast<size_t>(i)];
    int64_t* source = batch.source.tokens_bs.data_ptr<int64_t>() + i * s;
    for (const int32_t token : pair.source) *source++ = dropped(token);
    batch.source.lengths_b.data_ptr<int64_t>()[i] = static_cast<int64_t>(pair.source.size());
    int64_t* input = batch.inputs_bt.data_ptr<int64_t>() + i * t;
    int64_t* label = batch.labels_bt.data_ptr<int64_t>() + i * t;
    *input++ = dropped(PairVocabulary::begin);
    // A subword that the language does not output can only come from a development text; it counts as unknown.
    for (const int32_t token : pair.target) {
      *input++ = dropped(token);
      *label++ = place[token] >= 0 ? place[token] : place[PairVocabulary::unknown];
    }
    *label = place[PairVocabulary::end];
  }
  return batch;
}

}  // namespace normlab
