// Segments: a translation and its references as token ids, and statistics of segments that add up to a score.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace normlab {

using WordIds = std::vector<int32_t>;

// Equal words get equal ids, over all texts given to one object.
class TokenIds {
 public:
  WordIds operator()(std::span<const std::string> words);

 private:
  std::unordered_map<std::string, int32_t> ids_;
};

struct Segment {
  WordIds hypothesis;
  std::vector<WordIds> references;  // at least one
};

// One row a segment; a corpus score is a function of the sum over rows, so that tests need only new sums.
using StatisticRows = std::vector<std::vector<double>>;
using ScoreOfSums = std::function<double(std::span<const double>)>;

std::vector<double> sum_rows(const StatisticRows& rows);

// Counts of the n-grams of one order.
using NgramCounts = std::unordered_map<std::u32string, int64_t>;
NgramCounts count_ngrams(std::span<const int32_t> tokens, int order);

}  // namespace normlab
