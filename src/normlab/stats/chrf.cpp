// chrF: precision and recall averaged over the orders that both sides have, as sacreBLEU does since 2.0.
#include "normlab/stats/chrf.h"

#include <algorithm>

namespace normlab {
namespace {

using OrderCounts = std::vector<NgramCounts>;  // one for each order

OrderCounts count_orders(const WordIds& characters, const WordIds& words, const ChrfOptions& options) {
  OrderCounts counts;
  for (int n = 1; n <= options.character_order; ++n) counts.push_back(count_ngrams(characters, n));
  for (int n = 1; n <= options.word_order; ++n) counts.push_back(count_ngrams(words, n));
  return counts;
}

void append_matches(const NgramCounts& hypothesis, const NgramCounts& reference, std::vector<double>& row) {
  int64_t in_hypothesis = 0, in_reference = 0, common = 0;
  for (const auto& [ngram, count] : hypothesis) {
    in_hypothesis += count;
    if (const auto found = reference.find(ngram); found != reference.end()) common += std::min(count, found->second);
  }
  for (const auto& [ngram, count] : reference) in_reference += count;
  // An order that the reference is too short for does not count against the hypothesis.
  row.push_back(reference.empty() ? 0 : static_cast<double>(in_hypothesis));
  row.push_back(static_cast<double>(in_reference));
  row.push_back(static_cast<double>(common));
}

// An order that a side lacks counts with a precision or recall of next to nothing.
double chrf_with_eps(std::span<const double> sums, double factor) {
  constexpr double eps = 1e-16;
  double score = 0;
  for (size_t i = 0; i + 2 < sums.size(); i += 3) {
    const double precision = sums[i] > 0 ? sums[i + 2] / sums[i] : eps;
    const double recall = sums[i + 1] > 0 ? sums[i + 2] / sums[i + 1] : eps;
    const double weighted = factor * precision + recall;
    score += weighted > 0 ? (1 + factor) * precision * recall / weighted : eps;
  }
  return 100 * score / (static_cast<double>(sums.size()) / 3);
}

}  // namespace

std::vector<double> chrf_statistics(const ChrfSegment& segment, const ChrfOptions& options) {
  const OrderCounts hypothesis = count_orders(segment.characters.hypothesis, segment.words.hypothesis, options);
  std::vector<double> best;
  double best_score = -1;
  for (size_t i = 0; i < segment.characters.references.size(); ++i) {
    const WordIds& words = options.word_order > 0 ? segment.words.references[i] : WordIds();
    const OrderCounts reference = count_orders(segment.characters.references[i], words, options);
    std::vector<double> row;
    for (size_t order = 0; order < hypothesis.size(); ++order) append_matches(hypothesis[order], reference[order], row);
    if (const double score = chrf(row, options); score > best_score) {
      best_score = score;
      best = std::move(row);
    }
  }
  return best;
}

double chrf(std::span<const double> sums, const ChrfOptions& options) {
  const double factor = options.beta * options.beta;
  if (options.eps_smoothing) return chrf_with_eps(sums, factor);
  double precision = 0, recall = 0;
  int orders = 0;
  for (size_t i = 0; i + 2 < sums.size(); i += 3) {
    if (sums[i] == 0 || sums[i + 1] == 0) continue;
    precision += sums[i + 2] / sums[i];
    recall += sums[i + 2] / sums[i + 1];
    ++orders;
  }
  if (orders == 0 || precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

}  // namespace normlab
