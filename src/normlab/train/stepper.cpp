#include "normlab/train/stepper.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include <cmath>
#include <cstring>
#include <map>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/nn/observer.h"
#include "normlab/train/partial_optimizer.h"

namespace normlab {
namespace {

using torch::Tensor;

// Of one pass through the layers. Fewer, and the weights come from memory too often; more, and what one layer writes
// has left the caches before the next reads it.
constexpr int64_t tokens_at_once = 1024;

// What a part adds to the mean over all `words` of a step, times `weight`.
Tensor share_of_loss(const DecoderLm& model, const Batch& part, const Pass& pass, double weight, double words) {
  return model.loss(part.inputs, part.targets, pass) * (weight * static_cast<double>(part.words()) / words);
}
Tensor share_of_loss(const EncoderDecoder& model, const TranslationBatch& part, const Pass& pass, double weight,
                     double words) {
  return model.loss_sum(part, pass) * (weight / words);
}

template <class Model>
std::vector<Tensor> tensors_of(Model& model) {
  std::vector<Tensor> list;
  for (auto& [name, tensor] : model.parameters()) list.push_back(tensor);
  return list;
}

template <class Model>
std::vector<Parameter> trained_parameters(Model& model) {
  std::map<const void*, std::vector<int64_t>> maps;  // of the weights of linear maps
  model.visit_linears([&](const Linear& linear) { maps[linear.weight.unsafeGetTensorImpl()] = linear.maps; });
  std::vector<Parameter> list;
  model.visit([&](const std::string& name, Tensor& tensor, Role role) {
    if (role != Role::state) list.push_back({name, tensor, role, {}, maps[tensor.unsafeGetTensorImpl()]});
  });
  const std::vector<WeightConstraint> constraints = model.constraints();
  for (size_t i = 0; i < list.size(); ++i) list[i].constraint = constraints[i];
  return list;
}

std::unique_ptr<Optimizer> optimizer_of(const OptimizerSettings& settings, const std::vector<Parameter>& all,
                                        TrainedPart only, bool fused) {
  if (only == TrainedPart::all) return make_optimizer(settings, all, fused);
  std::vector<bool> trained;
  std::vector<Parameter> parameters;
  for (const Parameter& parameter : all) {
    trained.push_back(is_trained(only, parameter.role));
    if (trained.back()) parameters.push_back(parameter);
  }
  if (parameters.empty())
    throw UsageError("train.only", concat("the model has no parameters of the kind ",
                                          enum_names<TrainedPart>()[static_cast<size_t>(only)], "."));
  return std::make_unique<PartialOptimizer>(std::move(trained), make_optimizer(settings, parameters, fused));
}

template <class Model>
std::vector<Model> replicate(Model model) {
  std::vector<Model> replicas = {std::move(model)};
  const bool split = replicas.front().config().kernels == Kernels::fused;
  for (int i = 1; split && i < at::get_num_threads(); ++i) replicas.push_back(replicas.front().alias());
  return replicas;
}

}  // namespace

template <class Model, class ModelBatch>
BasicStepper<Model, ModelBatch>::BasicStepper(Model model, const OptimizerSettings& settings, TrainedPart only)
    : replicas_(replicate(std::move(model))),
      settings_(settings),
      only_(only),
      optimizer_(optimizer_of(settings, trained_parameters(replicas_.front()), only,
                              replicas_.front().config().kernels == Kernels::fused)),
      maxima_(replicas_.front().logit_maxima()) {
  for (Model& replica : replicas_) parameters_.push_back(tensors_of(replica));
  sinks_.resize(replicas_.size());
}

template <class Model, class ModelBatch>
double BasicStepper<Model, ModelBatch>::backward(const ModelBatch& batch, const Pass& pass, double weight,
                                                 const Share& share) {
  const int64_t rows = share.end - share.begin;
  const auto words = static_cast<double>(batch.words());
  const auto parts = std::min<int64_t>(rows, static_cast<int64_t>(replicas_.size()));
  const bool fused = model().config().kernels == Kernels::fused;
  const int64_t at_once =
      fused ? std::max<int64_t>(1, tokens_at_once / batch.row_tokens()) : std::max<int64_t>(1, rows);
  model().pack_weights();
  std::vector<double> losses(static_cast<size_t>(parts));
  const auto run_part = [&](int64_t part) {
    const torch::AutoGradMode with_gradients(true);  // the mode is a thread's own
    const auto replica = static_cast<size_t>(part);
    const int64_t part_end = share.begin + rows * (part + 1) / parts;
    for (int64_t begin = share.begin + rows * part / parts; begin < part_end; begin += at_once) {
      const int64_t end = std::min(begin + at_once, part_end);
      if (share.ends_step && end == part_end)
        sinks_[replica].listen([this](const c10::TensorImpl* parameter) { rank_sums_->complete(parameter); });
      Pass own = pass;
      own.first_sequence += begin;
      own.sink = &sinks_[replica];
      const Tensor loss = share_of_loss(replicas_[replica], batch.slice(begin, end), own, weight, words);
      loss.backward();
      sinks_[replica].collect(parameters_[replica]);
      if (loss.is_cpu())
        losses[replica] += loss.item<double>();
      else
        add_device_loss(loss);
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

template <class Model, class ModelBatch>
void BasicStepper<Model, ModelBatch>::add_device_loss(const Tensor& loss) {
  const Tensor added = loss.detach().to(torch::kFloat64);
  device_loss_ = device_loss_.defined() ? device_loss_ + added : added;
}

// Of each replica that had a part of the batch, in their order: the sum must not depend on which thread was first.
template <class Model, class ModelBatch>
std::vector<Gradients> BasicStepper<Model, ModelBatch>::gradients() const {
  std::vector<Gradients> parts;
  for (const auto& parameters : parameters_) {
    if (!parameters.front().grad().defined()) break;  // a batch smaller than the number of threads
    parts.emplace_back();
    for (const Tensor& parameter : parameters) parts.back().push_back(parameter.grad());
  }
  return parts;
}

template <class Model, class ModelBatch>
double BasicStepper<Model, ModelBatch>::backward_all(const std::vector<ModelBatch>& batches, Pass pass, bool shared) {
  for (auto& list : parameters_)
    for (Tensor& parameter : list) parameter.mutable_grad().reset();
  for (GradientSink& sink : sinks_) sink.clear();
  device_loss_.reset();
  // sigma-Reparam's norms of the weights give gradients of their own, later in the pass; with several threads the sum
  // over them comes first.
  const bool early = shared && replicas_.size() == 1 && !model().scheme().sigma_reparam;
  double loss = 0.0;
  for (const ModelBatch& batch : batches) {
    Share share{.begin = 0, .end = batch.rows(), .ends_step = early && &batch == &batches.back()};
    if (shared) share.begin = rank_sums_->first_row(share.end), share.end = rank_sums_->end_row(share.end);
    loss += backward(batch, pass, 1.0 / static_cast<double>(batches.size()), share);
    ++pass.step;
  }
  for (GradientSink& sink : sinks_) sink.listen(nullptr);
  return loss;
}

template <class Model, class ModelBatch>
double BasicStepper<Model, ModelBatch>::differentiate(const std::vector<ModelBatch>& batches, Pass pass) {
  const double loss = backward_all(batches, pass, /*shared=*/false);
  if (pass.observer) pass.observer->gradients(gradients());
  return device_loss_.defined() ? device_loss_.item<double>() : loss;
}

template <class Model, class ModelBatch>
void BasicStepper<Model, ModelBatch>::share_with(RankGroup& ranks, bool shard) {
  std::vector<Parameter> parameters = trained_parameters(model());
  const bool muon = std::holds_alternative<MuonSettings>(settings_);
  std::vector<bool> early, shared;  // early: matrices of the blocks
  for (const Parameter& each : parameters) {
    early.push_back(!each.maps.empty());
    shared.push_back(is_trained(only_, each.role) && (shard || (muon && early.back())));
  }
  rank_sums_ = std::make_unique<RankSums>(ranks, parameters_.front(), early);
  if (!shard && !muon) return;
  shards_ = std::make_unique<Shards>(ranks, parameters, shared);
  optimizer_ = optimizer_of(settings_, parameters, only_, model().config().kernels == Kernels::fused);
}

// What every rank computes is the same from the sums on, to the last bit.
template <class Model, class ModelBatch>
StepResult BasicStepper<Model, ModelBatch>::shared_step(const std::vector<ModelBatch>& batches, Pass pass, double lr,
                                                        double clip) {
  const double own_loss = backward_all(batches, pass, /*shared=*/true);
  const Gradients sums = rank_sums_->finish(gradients());
  if (pass.observer) pass.observer->gradients({sums});
  RankGroup& ranks = rank_sums_->ranks();
  StepResult result{.loss = sum(ranks, {device_loss_.defined() ? device_loss_.item<double>() : own_loss}).front()};
  if (const std::vector<float> own = maxima_.values(); !own.empty()) {
    const std::string bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(float));
    for (const std::string& each : ranks.gather(bytes)) {
      std::vector<float> values(own.size());
      std::memcpy(values.data(), each.data(), std::min(each.size(), bytes.size()));
      maxima_.add(values);
    }
  }
  if (std::isfinite(result.loss)) result.grad_norm = optimizer_->step({sums}, lr, clip);
  if (shards_ && std::isfinite(result.loss) && std::isfinite(result.grad_norm)) shards_->send_weights();
  return result;
}

template <class Model, class ModelBatch>
StepResult BasicStepper<Model, ModelBatch>::step(const std::vector<ModelBatch>& batches, Pass pass, double lr,
                                                 double clip) {
  maxima_.reset();
  pass.maxima = &maxima_;
  StepResult result;
  if (rank_sums_) {
    result = shared_step(batches, pass, lr, clip);
  } else if (!model().device().is_cpu()) {
    backward_all(batches, pass, /*shared=*/false);
    if (pass.observer) pass.observer->gradients(gradients());
    DeviceLoss loss{device_loss_};
    result.grad_norm = optimizer_->step(gradients(), lr, clip, &loss);
    result.loss = loss.value;
  } else {
    result.loss = differentiate(batches, pass);
    if (std::isfinite(result.loss)) result.grad_norm = optimizer_->step(gradients(), lr, clip);
  }
  result.finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
  if (result.finite) model().after_step(maxima_);
  return result;
}

template class BasicStepper<DecoderLm, Batch>;
template class BasicStepper<EncoderDecoder, TranslationBatch>;

}  // namespace normlab
