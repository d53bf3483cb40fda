// Summary numbers of a sample: moments, quantiles, ranks, box plots; and the checks that every test starts with.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace normlab {

struct Interval {
  double low = 0;
  double high = 0;
  double level = 0;  // the confidence it has, which an exact interval may exceed the one asked for
};

// Refuse fewer than `at_least` values, a NaN or an infinity; a confidence level outside (0, 1).
void require_sample(const std::string& where, std::span<const double> values, size_t at_least = 1);
void require_level(const std::string& where, double level);

double mean(std::span<const double> values);
double standard_deviation(std::span<const double> values);  // divides by n - 1; needs two values
double standard_error(std::span<const double> values);      // of the mean
double median(std::span<const double> values);
double quantile(std::span<const double> values, double q);  // linear interpolation, numpy's default

// The same of values already in ascending order, without a check.
double sorted_quantile(std::span<const double> ascending, double q);

struct BoxPlot {
  double q1 = 0, median = 0, q3 = 0;
  double whisker_low = 0, whisker_high = 0;  // the last data within 1.5 x IQR of the box
  double mean = 0;
  std::vector<double> outliers = {};  // ascending
};
BoxPlot box_plot(std::span<const double> values);

// Rank 1 is the smallest value; equal values share the average of their ranks.
struct Ranks {
  std::vector<double> ranks;      // of each value, in the order given
  std::vector<size_t> tied = {};  // sizes of the groups of equal values, only those larger than 1
  double tie_sum = 0;             // sum of t^3 - t over these groups
};
Ranks average_ranks(std::span<const double> values);

}  // namespace normlab
