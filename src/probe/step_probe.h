// Measures one training step, or one forward pass, while it runs: an observer that changes nothing.
#pragma once

#include "models/decoder_lm.h"
#include "nn/observer.h"
#include "probe/quantities.h"
#include "probe/row_norms.h"

namespace normlab {

class StepProbe : public Observer {
 public:
  struct Extent {
    int64_t first_pass = 0;  // Pass::step of the first batch
    int64_t batch_size = 1;  // sequences of a batch
    int64_t batches = 1;     // of the step
    bool everything = true;  // false: only what attention counts on its way
  };
  StepProbe(DecoderLm& model, const Extent& extent);

  void see(Site site, int layer, const torch::Tensor& x, const Pass& pass) override;
  AttentionStats* attention(int layer, const torch::Tensor& qkv_bthd, const AttentionForm& form,
                            const Pass& pass) override;
  void gradients(const std::vector<std::vector<torch::Tensor>>& parts) override;

  // After the step.
  std::vector<Reading> readings() const;

 private:
  // What one part of the batch shows of one layer; each thread writes its own.
  struct Part {
    HeadSums rows;                                                              // of query and key heads
    int64_t n_rows = 0;                                                         // of each head
    double d_q = 0.0, d_k = 0.0, d_v = 0.0, d_attn_out = 0.0, d_mlp_out = 0.0;  // squared norms
    double stream = 0.0, log_partition = 0.0;                                   // sums over tokens
    int64_t n_tokens = 0;
  };
  struct LayerWeights {
    size_t qkv_index = 0, out_index = 0;       // among the parameters
    torch::Tensor qkv, qkv_bias, out;          // as they are now
    torch::Tensor old_qkv, old_bias, old_out;  // as they were before the step
    std::vector<double> grads;                 // norms of dL/dW_q, dL/dW_k, dL/dW_v, dL/dW_o
  };
  struct LayerForm {
    torch::Tensor gain, p;
    bool normalised = false;
  };

  size_t place(int layer, const Pass& pass) const;
  std::vector<torch::Tensor> split_rows(const torch::Tensor& qkv) const;  // of W_q, W_k, W_v
  void add_heads(std::vector<Reading>& to, int layer) const;
  void add_weights(std::vector<Reading>& to, int layer) const;
  void add_angles(std::vector<Reading>& to, int layer) const;
  void add_activations(std::vector<Reading>& to, int layer) const;

  Extent extent_;
  int64_t sequences_ = 0, n_heads_ = 0, n_kv_heads_ = 0, d_head_ = 0;
  int n_layers_ = 0;
  std::vector<AttentionStats> stats_;  // [n_layers, sequences, n_heads]
  std::vector<Part> parts_;            // [n_layers + 1, sequences]
  std::vector<LayerWeights> weights_;
  std::vector<LayerForm> forms_;
};

}  // namespace normlab
