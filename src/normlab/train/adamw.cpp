#include "normlab/train/adamw.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "normlab/kernels/unit_vectors.h"

namespace normlab {
namespace {

using torch::Tensor;

// torch's own clip_grad_norm_ divides by norm + 1e-6; so do we, to match it.
double clip_factor(double norm, double clip) { return clip > 0.0 && norm > clip ? clip / (norm + 1e-6) : 1.0; }

}  // namespace

AdamWSettings adamw_settings(const OptimConfig& optim) {
  return {.beta1 = optim.beta1,
          .beta2 = optim.beta2,
          .eps = optim.eps,
          .weight_decay = optim.weight_decay,
          .gain_lr = optim.gain_lr};
}

AdamW::AdamW(NamedTensors parameters, AdamWSettings settings, std::vector<WeightConstraint> constraints,
             const std::vector<Role>& roles)
    : settings_(settings), rates_(parameters.size(), 1.0), constraints_(std::move(constraints)) {
  constraints_.resize(parameters.size());
  for (size_t i = 0; i < roles.size(); ++i)
    if (roles[i] == Role::qk_gain) rates_[i] = settings.gain_lr;
  for (auto& [name, parameter] : parameters) {
    names_.push_back(name);
    means_.push_back(torch::zeros_like(parameter).detach());
    squares_.push_back(torch::zeros_like(parameter).detach());
    steps_.push_back(torch::zeros({}, parameter.options().dtype(torch::kFloat32)).detach());
    parameters_.push_back(parameter);
    add_blocks(parameters_.size() - 1);
  }
}

// Whole vectors of a constrained matrix go together, so that the constraint is applied while they are in the cache.
void AdamW::add_blocks(size_t k) {
  const Tensor& parameter = parameters_[k];
  const WeightConstraint& constraint = constraints_[k];
  auto size = static_cast<size_t>(parameter.numel());
  size_t step = kNormBlock;
  if (constraint.kind != Constraint::none) {
    const auto cols = static_cast<size_t>(parameter.size(1));
    if (constraint.columns)
      size = cols, step = kColumnStripe;
    else
      step = std::max<size_t>(1, kNormBlock / cols) * cols;
  }
  for (size_t begin = 0; begin < size; begin += step) blocks_.push_back({k, begin, std::min(begin + step, size)});
}

// A block as ranges of the flat parameter: one, or one per row of a stripe.
template <class Work>
void AdamW::for_ranges(const Block& block, const Work& work) const {
  const WeightConstraint& constraint = constraints_[block.parameter];
  if (constraint.kind == Constraint::none || !constraint.columns) return work(RowRange{block.begin, block.end});
  const auto rows = static_cast<size_t>(parameters_[block.parameter].size(0)),
             cols = static_cast<size_t>(parameters_[block.parameter].size(1));
  for (size_t row = 0; row < rows; ++row) work(RowRange{row * cols + block.begin, row * cols + block.end});
}

void AdamW::update(const AdamWSpec& spec, const AdamWBuffers& buffers, const Block& block) const {
  for_ranges(block, [&](RowRange range) { adamw(spec, buffers, range); });
  const WeightConstraint& constraint = constraints_[block.parameter];
  if (constraint.kind == Constraint::none) return;
  const Tensor& parameter = parameters_[block.parameter];
  const UnitVectors matrix{.data = buffers.param,
                           .rows = static_cast<size_t>(parameter.size(0)),
                           .cols = static_cast<size_t>(parameter.size(1)),
                           .ball = constraint.kind == Constraint::ball};
  if (constraint.columns)
    unit_columns(matrix, {block.begin, block.end});
  else
    unit_rows(matrix, {block.begin / matrix.cols, block.end / matrix.cols});
}

double AdamW::step(const std::vector<Gradients>& parts, double lr, double clip) {
  const torch::NoGradGuard no_grad;
  return settings_.fused ? fused_step(parts, lr, clip) : composite_step(parts, lr, clip);
}

double AdamW::fused_step(const std::vector<Gradients>& parts, double lr, double clip) {
  const auto for_blocks = [&](const auto& work) {
    at::parallel_for(0, static_cast<int64_t>(blocks_.size()), /*grain_size=*/4, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) work(i);
    });
  };
  std::vector<double> squares(blocks_.size());
  for_blocks([&](size_t i) {
    const Block& block = blocks_[i];
    float* sum = parts.front()[block.parameter].mutable_data_ptr<float>();
    for_ranges(block, [&](RowRange range) {
      for (size_t part = 1; part < parts.size(); ++part)
        add_to(sum, parts[part][block.parameter].const_data_ptr<float>(), range);
      squares[i] += squared_norm(sum, range);
    });
  });
  double total = 0.0;
  for (double value : squares) total += value;
  const double norm = std::sqrt(total);
  if (!std::isfinite(norm)) return norm;

  torch::_foreach_add_(steps_, 1.0);
  for_blocks([&](size_t i) {
    const Block& block = blocks_[i];
    const size_t k = block.parameter;
    const AdamWSpec spec{.lr = lr * rates_[k],
                         .beta1 = settings_.beta1,
                         .beta2 = settings_.beta2,
                         .eps = settings_.eps,
                         .weight_decay = decay(k),
                         .step = static_cast<int64_t>(*steps_[k].const_data_ptr<float>()),
                         .clip = clip_factor(norm, clip)};
    update(spec,
           {.param = parameters_[k].mutable_data_ptr<float>(),
            .grad = parts.front()[k].const_data_ptr<float>(),
            .m = means_[k].mutable_data_ptr<float>(),
            .v = squares_[k].mutable_data_ptr<float>()},
           block);
  });
  for (const Tensor& parameter : parameters_) parameter.unsafeGetTensorImpl()->bump_version();
  return norm;
}

double AdamW::composite_step(const std::vector<Gradients>& parts, double lr, double clip) {
  const Gradients& gradients = parts.front();
  for (size_t part = 1; part < parts.size(); ++part) torch::_foreach_add_(gradients, parts[part]);
  const double norm = torch::stack(torch::_foreach_norm(gradients)).norm().item<double>();
  if (!std::isfinite(norm)) return norm;
  if (clip > 0.0 && norm > clip) torch::_foreach_mul_(gradients, clip_factor(norm, clip));
  torch::_foreach_add_(steps_, 1.0);
  std::map<std::pair<double, double>, std::vector<size_t>> groups;  // PyTorch's kernel takes one decay and rate for all
  for (size_t i = 0; i < parameters_.size(); ++i) groups[{decay(i), rates_[i]}].push_back(i);
  for (const auto& [how, members] : groups) {
    std::vector<Tensor> p, g, m, v, s;
    for (const size_t i : members) {
      p.push_back(parameters_[i]), g.push_back(gradients[i]), s.push_back(steps_[i]);
      m.push_back(means_[i]), v.push_back(squares_[i]);
    }
    const auto [weight_decay, rate] = how;
    at::_fused_adamw_(p, g, m, v, /*max_exp_avg_sqs=*/{}, s, lr * rate, settings_.beta1, settings_.beta2, weight_decay,
                      settings_.eps, /*amsgrad=*/false, /*maximize=*/false);
  }
  for (size_t i = 0; i < parameters_.size(); ++i) constrain(parameters_[i], constraints_[i]);
  return norm;
}

NamedTensors AdamW::state() const {
  NamedTensors list;
  for (size_t i = 0; i < names_.size(); ++i) {
    list.emplace_back("mean." + names_[i], means_[i]);
    list.emplace_back("square." + names_[i], squares_[i]);
    list.emplace_back("step." + names_[i], steps_[i]);
  }
  return list;
}

}  // namespace normlab
