// The Friedman test that several schemes rank equally over folds, and Nemenyi's critical difference of average ranks
// (both as in Demsar, JMLR 7, 2006).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "normlab/stats/summary.h"

namespace normlab {

struct FriedmanTest {
  std::vector<double> average_ranks;  // of each scheme; rank 1 is the smallest value
  double chi_square = 0;              // corrected for ties
  double df = 0;
  double p_value = 1;
  // Iman and Davenport's F is less conservative. It is infinite when all folds rank equally; its p value is then the
  // probability of that by chance (Conover, Practical Nonparametric Statistics, 5.8).
  double f = 0;
  double f_df1 = 0, f_df2 = 0;
  double f_p_value = 1;
};

// One row per fold, one column per scheme; at least two of each.
FriedmanTest friedman(std::span<const std::vector<double>> folds);

// Average ranks of two schemes that differ by at least this are different, at this confidence over all pairs.
double nemenyi_critical_difference(size_t n_schemes, size_t n_folds, double level = 0.95);

// Range of k independent standard normal values: its distribution function and quantile (studentised range with
// infinitely many degrees of freedom).
double normal_range_cdf(double range, size_t k);
double normal_range_quantile(double probability, size_t k);

}  // namespace normlab
