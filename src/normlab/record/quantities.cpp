#include "normlab/record/quantities.h"

#include <cmath>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr QuantityRow quantity_rows[] = {
    {"attn", "max_logit", "largest S_ij over sequences, queries i and visible keys j; signed"},
    {"attn", "min_logit", "smallest S_ij over the same; signed"},
    {"attn", "logit_norm", "Frobenius norm of S over visible keys, root mean square over sequences and heads"},
    {"attn", "logit_rms", "root mean square of S_ij over sequences, queries and visible keys"},
    {"attn", "logit_spread", "mean over rows of max_j S_ij - min_j S_ij"},
    {"attn", "entropy", "mean over rows of H_i = -sum_j A_ij ln A_ij, in nats"},
    {"attn", "relative_entropy", "mean over rows of H_i / ln n_i: 0 is one key, 1 is uniform"},
    {"attn", "min_entropy", "smallest H_i over rows"},
    {"attn", "saturated", "share of rows with max_j A_ij > 0.99"},
    {"attn", "q_norm", "mean of ||q_i||_2 before normalisation, rotation and gain"},
    {"attn", "k_norm", "mean of ||k_j||_2, likewise; grouped query heads share that of their key head"},
    {"attn", "q_peak", "mean of ||q_i||_inf / ||q_i||_2, from 1/sqrt(d_head) to 1: what p acts on"},
    {"attn", "k_peak", "mean of ||k_j||_inf / ||k_j||_2"},
    {"attn", "gain", "factor of q_hat, mean over channels; if the scheme has a gain"},
    {"attn", "p", "p of the norm, if it is learned"},
    {"grad", "w_q", "Frobenius norm of dL/dW_q before clipping, L the mean loss of the step"},
    {"grad", "w_k", "of dL/dW_k"},
    {"grad", "w_v", "of dL/dW_v"},
    {"grad", "w_o", "of dL/dW_o, the output projection of attention"},
    {"grad", "q", "norm of dL/dq over all sequences, queries and heads, q before normalisation"},
    {"grad", "k", "of dL/dk"},
    {"grad", "v", "of dL/dv"},
    {"grad", "attn_out",
     "norm of the gradient at the output of attention; without dropout that of the stream after it"},
    {"grad", "mlp_out", "the same for the MLP"},
    {"update", "w_q", "||W_q after - W_q before||_F / ||W_q before||_F of this step, with decay and constraints"},
    {"update", "w_k", "of W_k"},
    {"update", "w_v", "of W_v"},
    {"update", "w_o", "of W_o"},
    {"update", "angle_w_q",
     "angle in radians between W_q with its bias before and after the step, mean over heads: the effective learning "
     "rate of scale-invariant weights; if q and k are normalised"},
    {"update", "angle_w_k", "of W_k"},
    {"stream", "norm", "mean over tokens of ||h||_2, h the stream that enters the layer; the last is that of the head"},
    {"output", "log_partition", "mean over tokens of ln sum_v exp(logit_v)"},
};

}  // namespace

std::span<const QuantityRow> quantities() { return quantity_rows; }

const QuantityRow& row_of(Quantity quantity) { return quantity_rows[static_cast<size_t>(quantity)]; }

std::string definitions() {
  std::string out =
      "S are the logits as the softmax reads them: with scale, gain and soft-cap, before the mask "
      "is added; A = softmax(S) before dropout. A row is one query of one head; n_i is how many keys query i sees, and "
      "rows that see only one key count for S but not for rows. A layer's value is over all its heads.\n";
  for (const QuantityRow& row : quantity_rows) {
    const std::string name = concat(row.group, "/", row.key);
    out += concat("  ", name, std::string(name.size() < 22 ? 22 - name.size() : 1, ' '), row.definition, "\n");
  }
  return out;
}

std::string name_of(const Reading& reading) {
  const QuantityRow& row = row_of(reading.quantity);
  std::string name = concat(row.group, "/");
  if (reading.layer >= 0) name += key_of({reading.stack, reading.layer}) + "/";
  if (reading.head >= 0) name += concat("head", reading.head, "/");
  return name + row.key;
}

}  // namespace normlab
