// Norms of rows for the probes: one pass over the values, where torch's reductions over slices need several slow ones.
#pragma once

#include <torch/types.h>

#include <vector>

namespace normlab {

// Sums over all tokens, one for each of the first `heads` heads.
struct HeadSums {
  std::vector<double> norms;  // of ||x||_2
  std::vector<double> peaks;  // of ||x||_inf / ||x||_2; a zero vector counts as 0

  HeadSums slice(int64_t first, int64_t count) const;
  HeadSums& operator+=(const HeadSums& other);  // of as many heads, or to none yet
};
HeadSums head_sums(const torch::Tensor& x_bthd, int64_t heads);

// The squared L2 norms of heads [0, bounds[0]), [bounds[0], bounds[1]) ... of a tensor [b, t, h, d].
std::vector<double> squared_norms(const torch::Tensor& x_bthd, const std::vector<int64_t>& bounds);

double squared_norm(const torch::Tensor& x);      // of all of it
double sum_of_row_norms(const torch::Tensor& x);  // over the last dimension

}  // namespace normlab
