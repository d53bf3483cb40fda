#include "normlab/train/muon.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

namespace normlab {
namespace {

using torch::Tensor;

// Jordan et al. 2024; the floor of the norm is that of torch.optim.Muon.
constexpr double quintic_a = 3.4445, quintic_b = -4.7750, quintic_c = 2.0315, norm_floor = 1e-7;
constexpr int newton_schulz_steps = 5;

double update_scale(MuonScale scale, int64_t rows, int64_t cols) {
  const auto r = static_cast<double>(rows), c = static_cast<double>(cols);
  return scale == MuonScale::original ? std::sqrt(std::max(1.0, r / c)) : 0.2 * std::sqrt(std::max(r, c));
}

std::vector<Parameter> without_matrices(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> list;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(list),
               [](const Parameter& each) { return each.maps.empty(); });
  return list;
}

}  // namespace

MuonSettings muon_settings(const OptimConfig& optim) {
  return {.momentum = optim.momentum,
          .weight_decay = optim.weight_decay,
          .scale = optim.muon_scale,
          .adamw = adamw_settings(optim),
          .adamw_rate = optim.adamw_lr > 0.0 ? optim.adamw_lr / optim.lr : 1.0};
}

Tensor newton_schulz(const Tensor& matrix) {
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = tall ? matrix.t() : matrix;
  x = x / x.norm().clamp_min(norm_floor);
  for (int i = 0; i < newton_schulz_steps; ++i) {
    const Tensor gram = torch::mm(x, x.t());
    const Tensor polynomial = torch::addmm(gram, gram, gram, quintic_b, quintic_c);
    x = torch::addmm(x, polynomial, x, quintic_a);
  }
  return tall ? x.t() : x;
}

Muon::Muon(const std::vector<Parameter>& parameters, const MuonSettings& settings)
    : settings_(settings), adamw_(without_matrices(parameters), settings.adamw) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].maps.empty())
      others_.push_back(i);
    else
      matrices_.push_back(
          {i, parameters[i], parameters[i].owned ? torch::zeros_like(parameters[i].tensor).detach() : Tensor()});
  }
  largest_first_.resize(matrices_.size());
  std::iota(largest_first_.begin(), largest_first_.end(), size_t{0});
  std::stable_sort(largest_first_.begin(), largest_first_.end(), [this](size_t a, size_t b) {
    return matrices_[a].parameter.tensor.numel() > matrices_[b].parameter.tensor.numel();
  });
}

// Each thread takes the next matrix when it is done with one. The products of a matrix run on its thread alone, so that
// no bit depends on which thread that is.
void Muon::for_matrices(const std::function<void(size_t)>& work) const {
  std::atomic<size_t> next = 0;
  const bool on_cpu = matrices_.empty() || matrices_.front().parameter.tensor.is_cpu();
  at::parallel_for(0, on_cpu ? at::get_num_threads() : 1, 1, [&](int64_t, int64_t) {
    const torch::NoGradGuard no_grad;  // the mode is a thread's own
    for (size_t i = next++; i < largest_first_.size(); i = next++) work(largest_first_[i]);
  });
}

std::vector<Tensor> Muon::add_parts(const std::vector<Gradients>& parts) const {
  std::vector<Tensor> norms(matrices_.size());
  for_matrices([&](size_t i) {
    const Tensor& sum = parts.front()[matrices_[i].index];
    for (size_t part = 1; part < parts.size(); ++part) sum.add_(parts[part][matrices_[i].index]);
    norms[i] = torch::linalg_vector_norm(sum, 2, {}, /*keepdim=*/false, torch::kFloat64);
  });
  return norms;
}

double Muon::norm_of_sum(const std::vector<Gradients>& parts, const std::vector<Gradients>& others,
                         DeviceLoss* loss) const {
  std::vector<Tensor> scalars = add_parts(parts);
  const size_t matrices = scalars.size();
  const bool on_device = loss != nullptr;
  if (on_device && !others_.empty()) scalars.push_back(adamw_.add_parts_on_device(others));
  if (on_device) scalars.push_back(loss->on_device);
  const std::vector<double> read = read_together(scalars);
  if (on_device) loss->value = read.back();
  double total = 0.0;
  for (size_t i = 0; i < matrices; ++i) total += read[i] * read[i];
  const double of_others = !on_device ? adamw_.add_parts(others) : others_.empty() ? 0.0 : read[matrices];
  return std::hypot(std::sqrt(total), of_others);
}

void Muon::update(const Matrix& matrix, Tensor gradient, double lr) const {
  const auto& [name, weight, role, constraint, maps, owned] = matrix.parameter;
  matrix.momentum.lerp_(gradient, 1.0 - settings_.momentum);
  const Tensor update = gradient.lerp(matrix.momentum, settings_.momentum);
  weight.mul_(1.0 - lr * settings_.weight_decay);
  int64_t first = 0;
  for (const int64_t rows : maps) {
    const double scale = update_scale(settings_.scale, rows, weight.size(1));
    weight.narrow(0, first, rows).add_(newton_schulz(update.narrow(0, first, rows)), -lr * scale);
    first += rows;
  }
  constrain(weight, constraint);
}

double Muon::make_step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss) {
  std::vector<Gradients> others(parts.size());
  for (size_t part = 0; part < parts.size(); ++part)
    for (const size_t i : others_) others[part].push_back(parts[part][i]);
  const double norm = norm_of_sum(parts, others, loss);
  if (!std::isfinite(norm) || (loss && !std::isfinite(loss->value))) return norm;
  const double factor = clip_factor(norm, clip);
  adamw_.update(others.front(), lr * settings_.adamw_rate, factor);
  for_matrices([&](size_t i) {
    if (!matrices_[i].parameter.owned) return;
    const Tensor& gradient = parts.front()[matrices_[i].index];
    update(matrices_[i], factor == 1.0 ? gradient : gradient * factor, lr);
  });
  return norm;
}

NamedTensors Muon::state() const {
  NamedTensors list = adamw_.state();
  for (const Matrix& matrix : matrices_) list.emplace_back("momentum." + matrix.parameter.name, matrix.momentum);
  return list;
}

}  // namespace normlab
