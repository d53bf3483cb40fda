// Is one output better than another on the same segments: approximate randomisation (Riezler and Maxwell, 2005) and
// paired bootstrap (Koehn, 2004), with reproducible draws.
//
// The p-values are two-sided: p = (1 + #{|d* - c| >= |d|}) / (trials + 1) for the differences d* of the trials, with
// c = 0 for randomisation, whose trials obey the null hypothesis, and c = d for the bootstrap, which is shifted to it.
// sacreBLEU's bootstrap takes the mean of |d*| off each |d*| and counts one tail: about half of a two-sided p-value.
#pragma once

#include <string_view>

#include "normlab/stats/segments.h"
#include "normlab/stats/summary.h"

namespace normlab {

enum class PairedTest { randomization, bootstrap };
inline constexpr std::string_view paired_tests[] = {"randomization", "bootstrap"};  // in the enumerators' order

struct SignificanceOptions {
  PairedTest test = PairedTest::randomization;
  int trials = 10000;
  uint64_t seed = 0;
  double level = 0.95;  // of the interval
};

struct Significance {
  double difference = 0;   // score of the output minus score of the baseline
  double p_value = 1;      // two-sided; never below 1 / (trials + 1)
  double p_sacrebleu = 1;  // by sacreBLEU's formula, for comparison only
  Interval interval = {};  // bootstrap only: percentiles of the difference
};

// Rows of statistics of the baseline and of the output, segment by segment.
Significance compare_outputs(const StatisticRows& baseline, const StatisticRows& output, const ScoreOfSums& score,
                             const SignificanceOptions& options);

}  // namespace normlab
