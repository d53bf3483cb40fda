// Translation edit rate (Snover et al., 2006): insertions, deletions, substitutions and shifts of word blocks per
// reference word, by the search of Tercom as sacreBLEU 2.6.0 does it.
#pragma once

#include "normlab/stats/segments.h"

namespace normlab {

// The edits that turn the hypothesis into the reference, found greedily shift by shift.
int64_t translation_edits(const WordIds& hypothesis, const WordIds& reference);

std::vector<double> ter_statistics(const Segment& segment);  // fewest edits, mean length of the references

double ter(std::span<const double> sums);  // in percent; 0 is best, more than 100 is possible

}  // namespace normlab
