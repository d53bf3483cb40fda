// Measures one training step, or one forward pass, while it runs: an observer that changes nothing.
#pragma once

#include "normlab/nn/observer.h"
#include "normlab/probe/map_rows.h"
#include "normlab/probe/model_places.h"
#include "normlab/probe/row_norms.h"
#include "normlab/record/quantities.h"

namespace normlab {

class StepProbe : public Observer {
 public:
  struct Extent {
    int64_t first_pass = 0;                 // Pass::step of the first batch
    std::vector<int64_t> batch_rows = {1};  // sequences of each batch of the step
    bool everything = true;                 // false: only what attention counts on its way
  };
  StepProbe(DecoderLm& model, const Extent& extent);
  StepProbe(EncoderDecoder& model, const Extent& extent);

  void see(Site site, Place place, const torch::Tensor& x, const Pass& pass) override;
  AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                            const AttentionWeights& weights, const Pass& pass) override;
  void gradients(const std::vector<std::vector<torch::Tensor>>& parts) override;

  // After the step: what this process has seen of its rows, as bytes, and what another one has seen of its own.
  std::string seen() const;
  void add_seen(const std::string& bytes);

  // After the step.
  std::vector<Reading> readings() const;

 private:
  // What one part of the batch shows of one place; each thread writes its own.
  struct Part {
    HeadSums queries, keys;
    int64_t n_queries = 0, n_keys = 0;                                          // rows of each head
    double d_q = 0.0, d_k = 0.0, d_v = 0.0, d_attn_out = 0.0, d_mlp_out = 0.0;  // squared norms
    double stream = 0.0, log_partition = 0.0;                                   // sums over tokens
    int64_t n_tokens = 0;
    template <class Visit>
    void visit_values(const Visit& visit) {
      for (int64_t* count : {&n_queries, &n_keys, &n_tokens}) visit(*count);
      for (double* sum : {&d_q, &d_k, &d_v, &d_attn_out, &d_mlp_out, &stream, &log_partition}) visit(*sum);
      for (HeadSums* heads : {&queries, &keys}) visit(heads->norms), visit(heads->peaks);
    }
  };
  struct LayerForm {
    torch::Tensor gain, p;
    bool normalised = false;
  };

  StepProbe(const ModelPlaces& places, const ModelConfig& config, const Extent& extent, NamedTensors parameters);
  size_t slot(Place place, const Pass& pass) const;
  const Part& part(Place place, int64_t sequence) const {
    return parts_[places_.number(place) * static_cast<size_t>(sequences_) + static_cast<size_t>(sequence)];
  }
  void add_counts(std::vector<Reading>& to, Place place) const;
  void add_heads(std::vector<Reading>& to, Place place) const;
  void add_weights(std::vector<Reading>& to, Place place) const;
  void add_activations(std::vector<Reading>& to, Place place) const;

  Extent extent_;
  ModelPlaces places_;
  std::vector<int64_t> first_rows_;  // of each batch among all sequences
  int64_t sequences_ = 0, n_heads_ = 0, n_kv_heads_ = 0, d_head_ = 0;
  bool differentiated_ = false;        // or a forward pass alone
  std::vector<AttentionStats> stats_;  // [places, sequences, n_heads]
  std::vector<Part> parts_;            // [places, sequences]
  std::vector<MapsOfAttention> maps_;  // [places]
  std::vector<LayerForm> forms_;       // [places]
};

}  // namespace normlab
