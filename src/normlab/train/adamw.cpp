#include "normlab/train/adamw.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "normlab/kernels/unit_vectors.h"

namespace normlab {

using torch::Tensor;

AdamWSettings adamw_settings(const OptimConfig& optim) {
  return {.beta1 = optim.beta1,
          .beta2 = optim.beta2,
          .eps = optim.eps,
          .weight_decay = optim.weight_decay,
          .gain_lr = optim.gain_lr};
}

AdamW::AdamW(std::vector<Parameter> parameters, AdamWSettings settings)
    : settings_(settings), parameters_(std::move(parameters)) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& tensor = parameters_[i].tensor;
    const bool owned = parameters_[i].owned;
    means_.push_back(owned ? torch::zeros_like(tensor).detach() : Tensor());
    squares_.push_back(owned ? torch::zeros_like(tensor).detach() : Tensor());
    steps_.push_back(torch::zeros({}, tensor.options().dtype(torch::kFloat32)).detach());
    add_blocks(i);
  }
}

// Whole vectors of a constrained matrix go together, so that the constraint is applied while they are in the cache.
void AdamW::add_blocks(size_t k) {
  const auto& [name, tensor, role, constraint, maps, owned] = parameters_[k];
  auto size = static_cast<size_t>(tensor.numel());
  size_t step = kNormBlock;
  if (constraint.kind != Constraint::none) {
    const auto cols = static_cast<size_t>(tensor.size(1));
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
  const auto& [name, tensor, role, constraint, maps, owned] = parameters_[block.parameter];
  if (constraint.kind == Constraint::none || !constraint.columns) return work(RowRange{block.begin, block.end});
  const auto rows = static_cast<size_t>(tensor.size(0)), cols = static_cast<size_t>(tensor.size(1));
  for (size_t row = 0; row < rows; ++row) work(RowRange{row * cols + block.begin, row * cols + block.end});
}

template <class Work>
void AdamW::for_blocks(const Work& work) const {
  at::parallel_for(0, static_cast<int64_t>(blocks_.size()), /*grain_size=*/4, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) work(i);
  });
}

void AdamW::update_block(const AdamWSpec& spec, const AdamWBuffers& buffers, const Block& block) const {
  for_ranges(block, [&](RowRange range) { adamw(spec, buffers, range); });
  const auto& [name, tensor, role, constraint, maps, owned] = parameters_[block.parameter];
  if (constraint.kind == Constraint::none) return;
  const UnitVectors matrix{.data = buffers.param,
                           .rows = static_cast<size_t>(tensor.size(0)),
                           .cols = static_cast<size_t>(tensor.size(1)),
                           .ball = constraint.kind == Constraint::ball};
  if (constraint.columns)
    unit_columns(matrix, {block.begin, block.end});
  else
    unit_rows(matrix, {block.begin / matrix.cols, block.end / matrix.cols});
}

std::vector<double> read_together(const std::vector<Tensor>& scalars) {
  if (scalars.empty()) return {};
  std::vector<Tensor> doubles;
  for (const Tensor& each : scalars) doubles.push_back(each.detach().to(torch::kFloat64));
  const Tensor read = torch::stack(doubles).cpu();
  return {read.const_data_ptr<double>(), read.const_data_ptr<double>() + read.numel()};
}

double AdamW::make_step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss) {
  double norm = 0.0;
  if (loss) {
    const std::vector<double> read = read_together({add_parts_on_device(parts), loss->on_device});
    norm = read[0], loss->value = read[1];
  } else {
    norm = add_parts(parts);
  }
  if (std::isfinite(norm) && (!loss || std::isfinite(loss->value))) update(parts.front(), lr, clip_factor(norm, clip));
  return norm;
}

Tensor AdamW::add_parts_on_device(const std::vector<Gradients>& parts) const {
  const torch::NoGradGuard no_grad;
  const Gradients& gradients = parts.front();
  for (size_t part = 1; part < parts.size(); ++part) torch::_foreach_add_(gradients, parts[part]);
  return torch::stack(torch::_foreach_norm(gradients)).norm();
}

double AdamW::add_parts(const std::vector<Gradients>& parts) const {
  const torch::NoGradGuard no_grad;
  if (parameters_.empty()) return 0.0;
  if (!settings_.fused) return add_parts_on_device(parts).item<double>();
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
  return std::sqrt(total);
}

void AdamW::update(const Gradients& gradients, double lr, double factor) {
  const torch::NoGradGuard no_grad;
  if (parameters_.empty()) return;
  torch::_foreach_add_(steps_, 1.0);
  settings_.fused ? fused_update(gradients, lr, factor) : composite_update(gradients, lr, factor);
}

void AdamW::fused_update(const Gradients& gradients, double lr, double factor) {
  for_blocks([&](size_t i) {
    const Block& block = blocks_[i];
    const size_t k = block.parameter;
    if (!parameters_[k].owned) return;
    const AdamWSpec spec{.lr = lr * rate(k),
                         .beta1 = settings_.beta1,
                         .beta2 = settings_.beta2,
                         .eps = settings_.eps,
                         .weight_decay = decay(k),
                         .step = static_cast<int64_t>(*steps_[k].const_data_ptr<float>()),
                         .clip = factor};
    update_block(spec,
                 {.param = parameters_[k].tensor.mutable_data_ptr<float>(),
                  .grad = gradients[k].const_data_ptr<float>(),
                  .m = means_[k].mutable_data_ptr<float>(),
                  .v = squares_[k].mutable_data_ptr<float>()},
                 block);
  });
  for (const Parameter& parameter : parameters_) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

void AdamW::composite_update(const Gradients& gradients, double lr, double factor) {
  if (factor != 1.0) torch::_foreach_mul_(gradients, factor);
  std::map<std::pair<double, double>, std::vector<size_t>> groups;  // PyTorch's kernel takes one decay and rate for all
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].owned) groups[{decay(i), rate(i)}].push_back(i);
  for (const auto& [how, members] : groups) {
    std::vector<Tensor> p, g, m, v, s;
    for (const size_t i : members) {
      p.push_back(parameters_[i].tensor), g.push_back(gradients[i]), s.push_back(steps_[i]);
      m.push_back(means_[i]), v.push_back(squares_[i]);
    }
    const auto [weight_decay, multiple] = how;
    at::_fused_adamw_(p, g, m, v, /*max_exp_avg_sqs=*/{}, s, lr * multiple, settings_.beta1, settings_.beta2,
                      weight_decay, settings_.eps, /*amsgrad=*/false, /*maximize=*/false);
  }
  for (const Parameter& parameter : parameters_)
    if (parameter.owned) constrain(parameter.tensor, parameter.constraint);
}

NamedTensors AdamW::state() const {
  NamedTensors list;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    list.emplace_back("mean." + parameters_[i].name, means_[i]);
    list.emplace_back("square." + parameters_[i].name, squares_[i]);
    list.emplace_back("step." + parameters_[i].name, steps_[i]);
  }
  return list;
}

}  // namespace normlab
