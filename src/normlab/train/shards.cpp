#include "normlab/train/shards.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace normlab {

using torch::Tensor;

Shards::Shards(RankGroup& ranks, std::vector<Parameter>& parameters, const std::vector<bool>& shared)
    : ranks_(ranks), owners_(parameters.size(), -1) {
  std::vector<size_t> largest_first(parameters.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](size_t a, size_t b) { return parameters[a].tensor.numel() > parameters[b].tensor.numel(); });
  std::vector<int64_t> loads(static_cast<size_t>(ranks.size()));
  for (const size_t i : largest_first) {
    if (!shared[i]) continue;
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += parameters[i].tensor.numel();
    owners_[i] = static_cast<int>(least - loads.begin());
    parameters[i].owned = owners_[i] == ranks.rank();
  }
  parameters_ = parameters;
}

void Shards::send_weights() const {
  const torch::NoGradGuard no_grad;
  std::vector<std::pair<Tensor, Tensor>> staged;  // weights on a GPU, and copies where MPI cannot read them there
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (owners_[i] < 0) continue;
    const Tensor weight = parameters_[i].tensor.detach();
    const Tensor sent = weight.is_cpu() || ranks_.takes_device_memory() ? weight : weight.cpu();
    if (!sent.is_same(weight)) staged.emplace_back(weight, sent);
    ranks_.start_copy(static_cast<float*>(sent.mutable_data_ptr()), static_cast<size_t>(sent.numel()), owners_[i]);
  }
  ranks_.finish();
  for (const auto& [weight, sent] : staged) weight.copy_(sent);
  for (const Parameter& parameter : parameters_) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

// One tensor at a time, so that only rank 0 has more than its own share.
NamedTensors Shards::whole(const NamedTensors& state) const {
  const torch::NoGradGuard no_grad;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < parameters_.size(); ++i) places[parameters_[i].name] = i;
  std::string defined;
  for (const auto& [name, tensor] : state) defined += tensor.defined() ? '1' : '0';
  const std::vector<std::string> everywhere = ranks_.gather(defined);
  NamedTensors all;
  for (size_t i = 0; i < state.size(); ++i) {
    const auto& [name, tensor] = state[i];
    Tensor value = tensor;
    const bool complete =
        std::all_of(everywhere.begin(), everywhere.end(), [&](const std::string& has) { return has[i] == '1'; });
    if (!complete) {
      const size_t parameter = places.at(name.substr(name.find('.') + 1));
      value = (tensor.defined() ? tensor : torch::empty_like(parameters_[parameter].tensor.detach())).cpu();
      ranks_.start_copy(static_cast<float*>(value.mutable_data_ptr()), static_cast<size_t>(value.numel()),
                        owners_[parameter]);
      ranks_.finish();
    }
    if (ranks_.rank() == 0) all.emplace_back(name, value);
  }
  return all;
}

}  // namespace normlab
