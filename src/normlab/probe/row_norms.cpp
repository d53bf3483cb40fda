#include "normlab/probe/row_norms.h"

#include <algorithm>
#include <cmath>

#include "normlab/kernels/adamw.h"

namespace normlab {
namespace {

using torch::Tensor;

Tensor floats(const Tensor& x) { return x.detach().to(torch::kCPU, torch::kFloat32).contiguous(); }

// Sum of squares and largest absolute value; lanes of their own let the compiler use vectors.
struct RowFigures {
  float squares = 0.0F, most = 0.0F;
};
RowFigures figures_of(const float* x, int64_t d) {
  constexpr int64_t lanes = 16;
  float squares[lanes] = {}, most[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= d; i += lanes)
    for (int64_t k = 0; k < lanes; ++k) {
      const float value = std::fabs(x[i + k]);
      squares[k] += value * value;
      most[k] = value > most[k] ? value : most[k];
    }
  for (; i < d; ++i) squares[0] += x[i] * x[i], most[0] = std::max(most[0], std::fabs(x[i]));
  RowFigures out;
  for (int64_t k = 0; k < lanes; ++k) out.squares += squares[k], out.most = std::max(out.most, most[k]);
  return out;
}

}  // namespace

HeadSums HeadSums::slice(int64_t first, int64_t count) const {
  return {{norms.begin() + first, norms.begin() + first + count},
          {peaks.begin() + first, peaks.begin() + first + count}};
}

HeadSums& HeadSums::operator+=(const HeadSums& other) {
  norms.resize(other.norms.size()), peaks.resize(other.peaks.size());
  for (size_t i = 0; i < norms.size(); ++i) norms[i] += other.norms[i], peaks[i] += other.peaks[i];
  return *this;
}

HeadSums head_sums(const Tensor& x_bthd, int64_t heads) {
  const Tensor x = floats(x_bthd);
  const int64_t tokens = x.size(0) * x.size(1), stride = x.size(2) * x.size(3), d = x.size(3);
  HeadSums sums{std::vector<double>(static_cast<size_t>(heads)), std::vector<double>(static_cast<size_t>(heads))};
  const float* at = x.const_data_ptr<float>();
  for (int64_t token = 0; token < tokens; ++token, at += stride)
    for (int64_t h = 0; h < heads; ++h) {
      const RowFigures row = figures_of(at + h * d, d);
      const double norm = std::sqrt(static_cast<double>(row.squares));
      sums.norms[static_cast<size_t>(h)] += norm;
      if (norm > 0.0) sums.peaks[static_cast<size_t>(h)] += static_cast<double>(row.most) / norm;
    }
  return sums;
}

std::vector<double> squared_norms(const Tensor& x_bthd, const std::vector<int64_t>& bounds) {
  const Tensor x = floats(x_bthd);
  const int64_t tokens = x.size(0) * x.size(1), stride = x.size(2) * x.size(3), d = x.size(3);
  std::vector<double> sums(bounds.size());
  const float* at = x.const_data_ptr<float>();
  for (int64_t token = 0; token < tokens; ++token, at += stride) {
    int64_t first = 0;
    for (size_t i = 0; i < bounds.size(); ++i) {
      sums[i] += squared_norm(at, RowRange{static_cast<size_t>(first * d), static_cast<size_t>(bounds[i] * d)});
      first = bounds[i];
    }
  }
  return sums;
}

double squared_norm(const Tensor& tensor) {
  const Tensor x = floats(tensor);
  const auto size = static_cast<size_t>(x.numel());
  double sum = 0.0;
  for (size_t begin = 0; begin < size; begin += kNormBlock)
    sum += squared_norm(x.const_data_ptr<float>(), RowRange{begin, std::min(begin + kNormBlock, size)});
  return sum;
}

double sum_of_row_norms(const Tensor& tensor) {
  const Tensor x = floats(tensor);
  const int64_t width = x.size(-1), rows = x.numel() / width;
  double sum = 0.0;
  for (int64_t row = 0; row < rows; ++row)
    sum += std::sqrt(squared_norm(x.const_data_ptr<float>() + row * width, RowRange{0, static_cast<size_t>(width)}));
  return sum;
}

}  // namespace normlab
