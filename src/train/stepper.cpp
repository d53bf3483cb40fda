#include "train/stepper.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include <cmath>

#include "nn/observer.h"

namespace normlab {
namespace {

using torch::Tensor;

// Of one pass through the layers. Fewer, and the weights come from memory too often; more, and what one layer writes
// has left the caches before the next reads it.
constexpr int64_t tokens_at_once = 1024;

std::vector<Tensor> tensors_of(DecoderLm& model) {
  std::vector<Tensor> list;
  for (auto& [name, tensor] : model.parameters()) list.push_back(tensor);
  return list;
}

std::vector<DecoderLm> replicate(DecoderLm model) {
  std::vector<DecoderLm> replicas = {std::move(model)};
  const bool split = replicas.front().config().kernels == Kernels::fused;
  for (int i = 1; split && i < at::get_num_threads(); ++i) replicas.push_back(replicas.front().alias());
  return replicas;
}

AdamWSettings matching(const DecoderLm& model, AdamWSettings settings) {
  settings.fused = model.config().kernels == Kernels::fused;
  return settings;
}

}  // namespace

Stepper::Stepper(DecoderLm model, AdamWSettings settings)
    : replicas_(replicate(std::move(model))),
      optimizer_(replicas_.front().parameters(), matching(replicas_.front(), settings),
                 replicas_.front().constraints()) {
  for (DecoderLm& replica : replicas_) parameters_.push_back(tensors_of(replica));
}

double Stepper::backward(const Batch& batch, const Pass& pass, double weight) {
  const int64_t rows = batch.inputs.size(0), t = batch.inputs.size(1);
  const auto parts = std::min<int64_t>(rows, static_cast<int64_t>(replicas_.size()));
  const bool fused = model().config().kernels == Kernels::fused;
  const int64_t at_once = fused ? std::max<int64_t>(1, tokens_at_once / t) : rows;
  model().pack_weights();
  std::vector<double> losses(static_cast<size_t>(parts));
  const auto run_part = [&](int64_t part) {
    const torch::AutoGradMode with_gradients(true);  // the mode is a thread's own
    const int64_t part_end = rows * (part + 1) / parts;
    for (int64_t begin = rows * part / parts; begin < part_end; begin += at_once) {
      const int64_t end = std::min(begin + at_once, part_end);
      Pass own = pass;
      own.first_sequence += begin;
      const Tensor loss = replicas_[static_cast<size_t>(part)].loss(batch.inputs.slice(0, begin, end),
                                                                    batch.targets.slice(0, begin, end), own) *
                          (weight * static_cast<double>(end - begin) / static_cast<double>(rows));
      loss.backward();
      losses[static_cast<size_t>(part)] += loss.item<double>();
    }
  };
  if (parts == 1)
    run_part(0);
  else
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) run_part(part);
    });
  double total = 0.0;
  for (double loss : losses) total += loss;
  return total;
}

// Of each replica that had a part of the batch, in their order: the sum must not depend on which thread was first.
std::vector<Gradients> Stepper::gradients() const {
  std::vector<Gradients> parts;
  for (const auto& parameters : parameters_) {
    if (!parameters.front().grad().defined()) break;  // a batch smaller than the number of threads
    parts.emplace_back();
    for (const Tensor& parameter : parameters) parts.back().push_back(parameter.grad());
  }
  return parts;
}

double Stepper::differentiate(const std::vector<Batch>& batches, Pass pass) {
  for (auto& list : parameters_)
    for (Tensor& parameter : list) parameter.mutable_grad().reset();
  double loss = 0.0;
  for (const Batch& batch : batches) {
    loss += backward(batch, pass, 1.0 / static_cast<double>(batches.size()));
    ++pass.step;
  }
  if (pass.observer) pass.observer->gradients(gradients());
  return loss;
}

StepResult Stepper::step(const std::vector<Batch>& batches, Pass pass, double lr, double clip) {
  StepResult result{.loss = differentiate(batches, pass)};
  if (std::isfinite(result.loss)) result.grad_norm = optimizer_.step(gradients(), lr, clip);
  result.finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  if (result.finite) model().after_step();
  return result;
}

}  // namespace normlab
