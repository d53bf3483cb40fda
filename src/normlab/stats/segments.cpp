// Segments: ids by first appearance, n-grams keyed by their ids.
#include "normlab/stats/segments.h"

namespace normlab {

WordIds TokenIds::operator()(std::span<const std::string> words) {
  WordIds tokens;
  tokens.reserve(words.size());
  for (const std::string& word : words)
    tokens.push_back(ids_.try_emplace(word, static_cast<int32_t>(ids_.size())).first->second);
  return tokens;
}

std::vector<double> sum_rows(const StatisticRows& rows) {
  std::vector<double> sums(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows)
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += row[i];
  return sums;
}

NgramCounts count_ngrams(std::span<const int32_t> tokens, int order) {
  NgramCounts counts;
  const auto n = static_cast<size_t>(order);
  for (size_t start = 0; start + n <= tokens.size(); ++start)
    ++counts[std::u32string(tokens.begin() + static_cast<ptrdiff_t>(start),
                            tokens.begin() + static_cast<ptrdiff_t>(start + n))];
  return counts;
}

}  // namespace normlab
