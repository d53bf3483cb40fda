// The grid of a study: its variants by the values they take in each dimension, and the styles that show it.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/palette.h"
#include "normlab/study/run/plan.h"

namespace normlab {

// An axis, or the list of [[variant]] tables; only those with two values or more.
struct Dimension {
  std::string name;                 // "p"; "variant" for the tables
  std::vector<std::string> values;  // as in the configuration, or labels
  bool numeric = false;             // every value is a number

  std::string label(size_t value) const;  // "p = 3"; schemes and tables go by their name alone
};

struct Grid {
  std::vector<Dimension> dimensions;
  std::vector<std::vector<size_t>> places;  // of each variant: the number of its value in each dimension

  size_t variant_at(size_t row, size_t column) const;  // of two dimensions
};
Grid grid_of(const Plan& plan);

// Colours by the longer dimension, dashes and markers by the other. Numbers get a ramp, names get hues.
struct GridStyles {
  std::vector<Style> variants;
  std::vector<Style> values;  // of the values of `series`, for charts that show one dimension at a time
  size_t series = 0;          // the dimension of the colours
};
GridStyles styles_of(const Grid& grid, size_t baseline);

}  // namespace normlab
