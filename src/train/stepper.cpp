#include "train/stepper.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include <cmath>

namespace normlab {
namespace {

using torch::Tensor;

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

}  // namespace

Stepper::Stepper(DecoderLm model, const AdamWSettings& settings)
    : replicas_(replicate(std::move(model))), optimizer_(replicas_.front().parameters(), settings) {
  for (DecoderLm& replica : replicas_) parameters_.push_back(tensors_of(replica));
}

double Stepper::backward(const Batch& batch, const Pass& pass, double weight) {
  const int64_t rows = batch.inputs.size(0);
  const auto parts = std::min<int64_t>(rows, static_cast<int64_t>(replicas_.size()));
  std::vector<double> losses(static_cast<size_t>(parts));
  const auto run_part = [&](int64_t part) {
    const torch::AutoGradMode with_gradients(true);  // the mode is a thread's own
    const int64_t begin = rows * part / parts, end = rows * (part + 1) / parts;
    Pass own = pass;
    own.first_sequence += begin;
    const Tensor loss = replicas_[static_cast<size_t>(part)].loss(batch.inputs.slice(0, begin, end),
                                                                  batch.targets.slice(0, begin, end), own) *
                        (weight * static_cast<double>(end - begin) / static_cast<double>(rows));
    loss.backward();
    losses[static_cast<size_t>(part)] = loss.item<double>();
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

// In the order of the replicas, so that the sum does not depend on which thread was first.
std::vector<Tensor> Stepper::summed_gradients() {
  std::vector<Tensor> sums;
  for (const Tensor& parameter : parameters_.front()) sums.push_back(parameter.grad());
  const torch::NoGradGuard no_grad;
  for (size_t replica = 1; replica < replicas_.size(); ++replica) {
    if (!parameters_[replica].front().grad().defined()) break;  // a batch smaller than the number of threads
    std::vector<Tensor> more;
    for (const Tensor& parameter : parameters_[replica]) more.push_back(parameter.grad());
    at::parallel_for(0, static_cast<int64_t>(sums.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) sums[i].add_(more[i]);
    });
  }
  return sums;
}

StepResult Stepper::step(const std::vector<Batch>& batches, Pass pass, double lr, double clip) {
  for (auto& list : parameters_)
    for (Tensor& parameter : list) parameter.mutable_grad().reset();
  StepResult result;
  for (const Batch& batch : batches) {
    result.loss += backward(batch, pass, 1.0 / static_cast<double>(batches.size()));
    ++pass.step;
  }
  if (std::isfinite(result.loss)) result.grad_norm = clip_gradients(summed_gradients(), clip);
  result.finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  if (result.finite) optimizer_.step(lr);
  return result;
}

}  // namespace normlab
