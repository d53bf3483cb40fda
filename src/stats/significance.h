// Is one output better than another on the same segments: paired bootstrap (Koehn, 2004) and approximate
// randomisation (Riezler and Maxwell, 2005), with sacreBLEU's p-values and reproducible draws.
#pragma once

#include <string_view>

#include "stats/segments.h"
#include "stats/summary.h"

namespace normlab {

enum class PairedTest { bootstrap, randomization };
inline constexpr std::string_view paired_tests[] = {"bootstrap", "randomization"};  // in the enumerators' order

struct SignificanceOptions {
  PairedTest test = PairedTest::bootstrap;
  int trials = 1000;
  uint64_t seed = 0;
  double level = 0.95;  // of the interval
};

struct Significance {
  double difference = 0;   // score of the output minus score of the baseline
  double p_value = 1;      // two-sided; never below 1 / (trials + 1)
  Interval interval = {};  // bootstrap only: percentiles of the difference
};

// Rows of statistics of the baseline and of the output, segment by segment.
Significance compare_outputs(const StatisticRows& baseline, const StatisticRows& output, const ScoreOfSums& score,
                             const SignificanceOptions& options);

}  // namespace normlab
