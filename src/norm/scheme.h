// The vocabulary of normalisation: a NormScheme answers a few questions, each answer is a closed enum or a number,
// and each is interpreted by exactly one function above the torch line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"

namespace normlab {

enum class SublayerNorm { layer, rms, scale, none };
enum class NormPlacement { pre, post };  // norm(x) into the branch, or norm(x + branch)
enum class EmbeddingNorm { none, fixnorm };  // sqrt(d_model) unit rows in, unit rows out
enum class QkNorm { none, lp };
enum class QkScope { head, all_heads };          // what one norm is taken over
enum class QkOrder { before_rope, after_rope };  // commutes with the rotation only for p = 2 without channel gains
enum class GainSharing { none, model, layer, head, channel };
enum class PSharing { layer, head };
enum class LogitScale { inverse_sqrt_d_head, one };

// The initial value of the gain: a number or a rule that needs the model's sizes.
struct GainInit {
  enum class Rule { number, log2_pairs, sqrt_d_head, matched };
  Rule rule = Rule::number;
  double value = 1.0;

  static std::optional<GainInit> parse(const std::string& text);
  std::string text() const;
};

struct NormScheme {
  std::string name;

  SublayerNorm sublayer = SublayerNorm::layer;
  NormPlacement placement = NormPlacement::pre;
  double sublayer_eps = 1e-5;
  EmbeddingNorm embedding = EmbeddingNorm::none;

  QkNorm qk = QkNorm::none;
  double p = 2.0;
  bool learn_p = false;
  PSharing p_sharing = PSharing::layer;
  QkScope scope = QkScope::head;
  QkOrder order = QkOrder::before_rope;
  double qk_eps = 1e-12;

  GainSharing gain = GainSharing::none;
  GainInit gain_init = {};
  bool learn_gain = true;
  LogitScale logit_scale = LogitScale::inverse_sqrt_d_head;

  // What the scheme's authors train with; used only where the user said nothing.
  struct Recommended {
    std::optional<double> weight_decay;
    std::optional<int> warmup_steps;
  } recommended = {};

  // For `normlab schemes` and the docs.
  std::string title = {}, equation = {}, source = {};
};

// The rows, in the order in which they are listed.
const std::vector<NormScheme>& catalogue();
// The row of that name; UsageError with the nearest name when there is none.
const NormScheme& find_scheme(const std::string& name);

void list_fields(NormScheme& scheme, FieldList& list);
// Refuses combinations that make no sense, with the reason.
void check(const NormScheme& scheme);

// Initial gain for heads of d_head channels and sequences of `length` tokens. `matched` gives every p the spread of
// logits that p = 2 has with log2(L^2 - L) at initialisation (Gaussian q and k).
struct GainSizes {
  int d_head = 0, n_heads = 1, length = 0;
};
double initial_gain(const NormScheme& scheme, GainSizes sizes);

// E ||x_hat||_2^2 of a Gaussian x in R^d divided by its Lp norm: the spread of q_hat . k_hat is this over sqrt(d).
double mean_square_after_lp(double p, int d);

}  // namespace normlab
