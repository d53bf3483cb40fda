// A trained model looked at closely: the readings of given text, attention weights as they are, spectra of W_q^T W_k,
// the lower bound of the entropy, and logits position by position.
#pragma once

#include "normlab/probe/step_probe.h"

namespace normlab {

struct HeadPlace {
  int layer = 0, head = 0;
  bool operator==(const HeadPlace&) const = default;
};

// Of the queries at one position, over all heads of a layer.
struct PositionPoint {
  double max_logit = 0.0;         // over heads and windows
  double relative_entropy = 0.0;  // mean over heads and windows; NaN where a query sees one key
};

struct AttentionMap {
  HeadPlace place;
  std::vector<std::vector<double>> weights;  // [query][key]; NaN where the key is not visible
};

// Singular values of W_q^T W_k of one head, falling: the energy of few of them is what attention can tell apart.
struct Spectrum {
  HeadPlace place;
  std::vector<double> values;
  double share(size_t top) const;  // of the sum of squares
};

struct EntropyFloor {
  HeadPlace place;
  double value = 0.0;  // mean over rows of entropy_floor() of each row
};

struct Inspection {
  double loss = 0.0;  // nats per token
  std::vector<Reading> readings;
  std::vector<EntropyFloor> floors;
  std::vector<std::vector<PositionPoint>> positions;  // [layer][position]
  std::vector<Spectrum> spectra;
};

// The least entropy that a row of n >= 2 logits can have whose deviations from their mean have the L2 norm sigma
// (Zhai et al. 2023, arXiv 2303.06296, theorem 3.1, there with a bound of sigma by the weights):
//   ln(1 + (n-1) b) + sigma sqrt(n (n-1)) b / (1 + (n-1) b),   b = exp(-sigma sqrt(n / (n-1)))
double entropy_floor(double sigma, int64_t n);

// `inputs` [windows, t] and their targets.
Inspection inspect(DecoderLm& model, const torch::Tensor& inputs, const torch::Tensor& targets);

// The weights of these heads over one window, [1, t].
std::vector<AttentionMap> attention_maps(const DecoderLm& model, const torch::Tensor& inputs,
                                         const std::vector<HeadPlace>& heads);

// The heads of least and of largest relative entropy and of the largest logit, each once.
std::vector<HeadPlace> notable_heads(const std::vector<Reading>& readings);

}  // namespace normlab
