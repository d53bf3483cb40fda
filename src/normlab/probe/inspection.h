// A trained model looked at closely: the readings of given text, attention weights and logits as they are, histograms
// of logits, spectra of W_q^T W_k, the lower bound of the entropy, and logits position by position.
#pragma once

#include "normlab/probe/spectrum.h"
#include "normlab/probe/step_probe.h"

namespace normlab {

// Of the queries at one position, over all heads of a layer.
struct PositionPoint {
  double max_logit = 0.0;         // over heads and sequences
  double relative_entropy = 0.0;  // mean over heads and sequences; NaN where a query sees one key
};

struct AttentionMap {
  HeadPlace place;
  std::vector<std::vector<double>> weights, logits;  // [query][key]; NaN where the key is not visible
};

// The logits of all visible keys, in bins of equal width from the least to the largest.
struct LogitHistogram {
  HeadPlace place;
  double low = 0.0, high = 0.0;
  std::vector<double> counts;
};

struct EntropyFloor {
  HeadPlace place;
  double value = 0.0;  // mean over rows of entropy_floor() of each row
};

struct Inspection {
  double loss = 0.0;  // nats per token
  std::vector<Reading> readings;
  std::vector<Place> places;                          // of attention, stack by stack
  std::vector<std::vector<PositionPoint>> positions;  // [place][position]
  std::vector<EntropyFloor> floors;                   // these and the next for every head of every place
  std::vector<LogitHistogram> histograms;
  std::vector<Spectrum> spectra;
};

// The least entropy that a row of n >= 2 logits can have whose deviations from their mean have the L2 norm sigma
// (Zhai et al. 2023, arXiv 2303.06296, theorem 3.1, there with a bound of sigma by the weights):
//   ln(1 + (n-1) b) + sigma sqrt(n (n-1)) b / (1 + (n-1) b),   b = exp(-sigma sqrt(n / (n-1)))
double entropy_floor(double sigma, int64_t n);

// `inputs` [windows, t] and their targets.
Inspection inspect(DecoderLm& model, const torch::Tensor& inputs, const torch::Tensor& targets);
// Batches of one pair each, without padding.
Inspection inspect(EncoderDecoder& model, const std::vector<TranslationBatch>& pairs);

// Weights and logits of every head over one window, [1, t], or one pair.
std::vector<AttentionMap> attention_maps(const DecoderLm& model, const torch::Tensor& inputs);
std::vector<AttentionMap> attention_maps(const EncoderDecoder& model, const TranslationBatch& pair);

// The heads of least and of largest relative entropy and of the largest logit, each once.
std::vector<HeadPlace> notable_heads(const std::vector<Reading>& readings);

}  // namespace normlab
