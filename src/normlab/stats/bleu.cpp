// BLEU: the order of operations is sacreBLEU's, so that the last bits agree, too.
#include "normlab/stats/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "normlab/base/text.h"

namespace normlab {
namespace {

// A row is the two lengths, then the matches, then the n-grams of each order.
constexpr size_t correct_at = 2, total_at = 2 + bleu_order;

double log_or_floor(double value) { return value == 0 ? -9999999999.0 : std::log(value); }

int64_t closest_length(const Segment& segment) {
  const auto length = static_cast<int64_t>(segment.hypothesis.size());
  int64_t best = static_cast<int64_t>(segment.references.front().size());
  for (const WordIds& reference : segment.references) {
    const auto candidate = static_cast<int64_t>(reference.size());
    const int64_t further = std::abs(length - candidate) - std::abs(length - best);
    if (further < 0 || (further == 0 && candidate < best)) best = candidate;
  }
  return best;
}

double brevity_penalty(double hypothesis_length, double reference_length) {
  if (hypothesis_length >= reference_length) return 1;
  return hypothesis_length > 0 ? std::exp(1 - reference_length / hypothesis_length) : 0;
}

// The number of orders that count.
size_t fill_precisions(BleuScore& out, const BleuOptions& options) {
  const double value = smoothing_value(options).value_or(0);
  double halvings = 1;
  size_t orders = options.effective_order ? 0 : bleu_order;
  for (size_t n = 0; n < bleu_order; ++n) {
    if (options.smoothing == BleuSmoothing::add_k && n > 0) {
      out.correct[n] += value;
      out.total[n] += value;
    }
    if (out.total[n] == 0) break;
    orders = std::max(orders, n + 1);
    if (out.correct[n] != 0) {
      out.precisions[n] = 100.0 * out.correct[n] / out.total[n];
    } else if (options.smoothing == BleuSmoothing::exp) {
      halvings *= 2;
      out.precisions[n] = 100.0 / (halvings * out.total[n]);
    } else if (options.smoothing == BleuSmoothing::floor) {
      out.precisions[n] = 100.0 * value / out.total[n];
    }
  }
  return orders;
}

}  // namespace

std::optional<double> smoothing_value(const BleuOptions& options) {
  if (options.smoothing == BleuSmoothing::floor) return options.value.value_or(0.1);
  if (options.smoothing == BleuSmoothing::add_k) return options.value.value_or(1);
  return std::nullopt;
}

double BleuScore::length_ratio() const {
  return reference_length == 0 ? 0 : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
}

std::string BleuScore::details() const {
  std::string text;
  for (const double precision : precisions) text += concat(text.empty() ? "" : "/", fixed(precision, 1));
  return concat(text, " (BP = ", fixed(brevity_penalty, 3), " ratio = ", fixed(length_ratio(), 3),
                " hyp_len = ", hypothesis_length, " ref_len = ", reference_length, ")");
}

std::vector<double> bleu_statistics(const Segment& segment) {
  std::vector<double> row(2 + 2 * bleu_order);
  row[0] = static_cast<double>(segment.hypothesis.size());
  row[1] = static_cast<double>(closest_length(segment));
  for (size_t n = 0; n < bleu_order; ++n) {
    NgramCounts most;  // over the references
    for (const WordIds& reference : segment.references)
      for (const auto& [ngram, count] : count_ngrams(reference, static_cast<int>(n) + 1))
        most[ngram] = std::max(most[ngram], count);
    for (const auto& [ngram, count] : count_ngrams(segment.hypothesis, static_cast<int>(n) + 1)) {
      row[total_at + n] += static_cast<double>(count);
      if (const auto found = most.find(ngram); found != most.end())
        row[correct_at + n] += static_cast<double>(std::min(count, found->second));
    }
  }
  return row;
}

BleuScore bleu(std::span<const double> sums, const BleuOptions& options) {
  BleuScore out{.brevity_penalty = brevity_penalty(sums[0], sums[1]),
                .hypothesis_length = static_cast<int64_t>(sums[0]),
                .reference_length = static_cast<int64_t>(sums[1])};
  std::copy_n(sums.begin() + correct_at, bleu_order, out.correct.begin());
  std::copy_n(sums.begin() + total_at, bleu_order, out.total.begin());
  // Without a single match no smoothing makes a score.
  if (std::ranges::all_of(out.correct, [](double count) { return count == 0; })) return out;
  const size_t orders = fill_precisions(out, options);
  double logs = 0;
  for (size_t n = 0; n < orders; ++n) logs += log_or_floor(out.precisions[n]);
  out.score = out.brevity_penalty * std::exp(logs / static_cast<double>(orders));
  return out;
}

BleuScore corpus_bleu(std::span<const Segment> segments, const BleuOptions& options) {
  StatisticRows rows;
  for (const Segment& segment : segments) rows.push_back(bleu_statistics(segment));
  return bleu(rows.empty() ? std::vector<double>(2 + 2 * bleu_order) : sum_rows(rows), options);
}

std::string multi_bleu_line(std::span<const double> sums) {
  if (sums[1] == 0) return "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)";
  const double penalty = brevity_penalty(sums[0], sums[1]);
  std::string precisions;
  double logs = 0;
  for (size_t n = 0; n < bleu_order; ++n) {
    const double precision = sums[total_at + n] == 0 ? 0 : sums[correct_at + n] / sums[total_at + n];
    precisions += concat(n == 0 ? "" : "/", fixed(100 * precision, 1));
    logs += log_or_floor(precision);
  }
  return concat("BLEU = ", fixed(100 * (penalty * std::exp(logs / bleu_order)), 2), ", ", precisions,
                " (BP=", fixed(penalty, 3), ", ratio=", fixed(sums[0] / sums[1], 3),
                ", hyp_len=", static_cast<int64_t>(sums[0]), ", ref_len=", static_cast<int64_t>(sums[1]), ")");
}

}  // namespace normlab
