// chrF and chrF++ (Popovic, 2015 and 2017) as sacreBLEU 2.6.0 computes them: an F-score of n-grams of characters and,
// in chrF++, of words.
#pragma once

#include "normlab/stats/segments.h"

namespace normlab {

struct ChrfOptions {
  int character_order = 6;
  int word_order = 0;  // 2 makes it chrF++
  int beta = 2;        // recall counts beta times as much as precision
  bool eps_smoothing =
      false;  // the mean of F-scores of all orders, as chrF++.py, instead of the orders both sides have
};

// The same text twice: as characters, and as words (unused when word_order is 0).
struct ChrfSegment {
  Segment characters, words;
};

// N-grams of the hypothesis, of the reference, and common to both, for each order; of the best reference.
std::vector<double> chrf_statistics(const ChrfSegment& segment, const ChrfOptions& options = {});

double chrf(std::span<const double> sums, const ChrfOptions& options = {});  // 0 to 100

}  // namespace normlab
