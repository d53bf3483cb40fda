// Finds the first tensor of a step that is not finite: in the forward pass from the input on, else in the backward pass
// from the loss on, else among the gradients of the parameters.
#pragma once

#include <limits>
#include <mutex>

#include "models/decoder_lm.h"
#include "nn/observer.h"

namespace normlab {

class FirstBad : public Observer {
 public:
  explicit FirstBad(DecoderLm& model);

  void see(Site site, int layer, const torch::Tensor& x, const Pass& pass) override;
  AttentionStats* attention(int layer, const torch::Tensor& qkv_bthd, const AttentionForm& form,
                            const Pass& pass) override;
  void gradients(const std::vector<std::vector<torch::Tensor>>& parts) override;

  // "the keys of layer 3, head 1", or empty when every tensor seen was finite.
  const std::string& name() const { return name_; }

 private:
  void check(int64_t order, const torch::Tensor& x, const std::string& name);
  void check_both_ways(int64_t order, const torch::Tensor& x, const std::string& name);

  std::vector<std::string> parameters_;
  int64_t n_layers_ = 0, n_heads_ = 0, n_kv_heads_ = 0;
  std::mutex mutex_;
  int64_t first_ = std::numeric_limits<int64_t>::max();  // order of the tensor that `name_` names
  std::string name_;
};

}  // namespace normlab
