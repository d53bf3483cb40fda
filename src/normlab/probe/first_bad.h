// Finds the first tensor of a step that is not finite: in the forward pass from the input on, else in the backward pass
// from the loss on, else among the gradients of the parameters.
#pragma once

#include <limits>
#include <mutex>

#include "normlab/nn/observer.h"
#include "normlab/probe/model_places.h"

namespace normlab {

class FirstBad : public Observer {
 public:
  explicit FirstBad(DecoderLm& model);
  explicit FirstBad(EncoderDecoder& model);

  void see(Site site, Place place, const torch::Tensor& x, const Pass& pass) override;
  AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                            const AttentionWeights& weights, const Pass& pass) override;
  void gradients(const std::vector<std::vector<torch::Tensor>>& parts) override;

  // "the keys of layer 3, head 1 (NaN)", or empty when every tensor seen was finite.
  const std::string& name() const { return name_; }

 private:
  FirstBad(const ModelPlaces& places, const NamedTensors& parameters);
  void check(int64_t order, const torch::Tensor& x, const std::string& name);
  void check_both_ways(int64_t order, const torch::Tensor& x, const std::string& name);

  int64_t order_of(Place place) const;

  ModelPlaces places_;
  std::vector<std::string> parameters_;
  std::mutex mutex_;
  int64_t first_ = std::numeric_limits<int64_t>::max();  // order of the tensor that `name_` names
  std::string name_;
};

}  // namespace normlab
