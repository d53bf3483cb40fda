#include "normlab/models/translate.h"

#include <algorithm>
#include <numeric>

namespace normlab {

std::vector<int32_t> read_source(PairVocabulary& vocabulary, const std::string& line, int64_t seq_len,
                                 TranslatedLine& out) {
  std::vector<int32_t> ids = vocabulary.encode(Side::source, line);
  if (ids.empty()) return ids;
  const auto most = static_cast<size_t>(seq_len);
  if (ids.size() + 1 > most) {
    out.tokens_left_out = static_cast<int64_t>(ids.size() + 1 - most);
    ids.resize(most - 1);
  }
  ids.push_back(PairVocabulary::end);
  return ids;
}

int64_t longest_translation(int64_t source_tokens, int64_t seq_len) {
  constexpr int64_t extra_symbols = 50;  // as in Vaswani et al. 2017
  return std::min(source_tokens + extra_symbols, seq_len);
}

SourceBatch make_source_batch(const std::vector<std::vector<int32_t>>& sources) {
  size_t longest = 0;
  for (const auto& source : sources) longest = std::max(longest, source.size());
  const auto b = static_cast<int64_t>(sources.size()), s = static_cast<int64_t>(longest);
  SourceBatch batch{torch::full({b, s}, int64_t{PairVocabulary::padding}, torch::kInt64),
                    torch::empty({b}, torch::kInt64)};
  for (int64_t i = 0; i < b; ++i) {
    const auto& source = sources[static_cast<size_t>(i)];
    std::copy(source.begin(), source.end(), batch.tokens_bs.data_ptr<int64_t>() + i * s);
    batch.lengths_b.data_ptr<int64_t>()[i] = static_cast<int64_t>(source.size());
  }
  return batch;
}

std::vector<TranslatedLine> translate_lines(const EncoderDecoder& model, PairVocabulary& vocabulary,
                                            const std::vector<std::string>& lines, const BeamOptions& options,
                                            size_t batch_size) {
  const int64_t seq_len = model.config().seq_len;
  std::vector<TranslatedLine> out(lines.size());
  std::vector<std::vector<int32_t>> sources;
  std::vector<size_t> order;
  for (size_t i = 0; i < lines.size(); ++i) {
    sources.push_back(read_source(vocabulary, lines[i], seq_len, out[i]));
    if (!sources.back().empty()) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return sources[i].size(); });
  const OutputVocabulary outputs = make_output_vocabulary(vocabulary.outputs());
  for (size_t first = 0; first < order.size(); first += batch_size) {
    const std::vector<size_t> part(order.begin() + static_cast<int64_t>(first),
                                   order.begin() + static_cast<int64_t>(std::min(first + batch_size, order.size())));
    std::vector<std::vector<int32_t>> batch;
    BeamTask task{.source = {}, .outputs = outputs, .limits = {}};
    for (const size_t i : part) {
      batch.push_back(sources[i]);
      task.limits.push_back(longest_translation(static_cast<int64_t>(sources[i].size()), seq_len));
    }
    task.source = make_source_batch(batch);
    const auto found = beam_search(model, task, options);
    if (found.empty()) return {};
    for (size_t k = 0; k < part.size(); ++k)
      for (const Hypothesis& each : found[k])
        out[part[k]].alternatives.push_back(
            {vocabulary.decode(each.symbols), each.score, static_cast<int64_t>(each.symbols.size())});
  }
  return out;
}

}  // namespace normlab
