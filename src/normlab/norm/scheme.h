// The vocabulary of normalisation: a NormScheme answers a few questions, each answer is a closed enum or a number,
// and each is interpreted by exactly one function above the torch line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/base/fields.h"
#include "normlab/norm/attention_form.h"
#include "normlab/norm/factor.h"

namespace normlab {

enum class SublayerNorm { layer, rms, scale, dyt, none };
// norm(x) into the branch, norm(x + branch), x + norm(branch), or x + norm(branch of norm(x))
enum class NormPlacement { pre, post, branch, both };
enum class DepthScale { one, inverse_sqrt_layer };  // what the norm of layer l = 1, 2, ... is multiplied by
// sqrt(d_model) unit rows in, unit rows out; a learnable scale in; sqrt(d_model) times the rows in
enum class EmbeddingNorm { none, fixnorm, scaled, sqrt_d };
enum class Residual { add, lerp_unit, lerp_nu, lerp };
enum class AlphaSharing { channel, layer };
enum class MapScale { none, s_uv, nu };  // of the outputs of linear maps: learnable in the MLP, or constants everywhere

enum class QkAffine { none, shared, own };  // channel gains of rms and layer: one vector for all heads, or one each
enum class GainSharing { none, model, layer, head, channel };
enum class GainOn { queries, both };
enum class GainForm { plain, exp };
enum class PSharing { layer, head };

enum class OutputScale { none, s_z };
enum class Constraint { none, unit, ball };     // after each step: norm = 1, or norm <= 1
enum class ConstraintAxis { embedding, rows };  // of vectors along d_model, or of the rows of every matrix

struct NormScheme {
  std::string name;

  SublayerNorm sublayer = SublayerNorm::layer;
  NormPlacement placement = NormPlacement::pre;
  double sublayer_eps = 1e-5;
  DepthScale sublayer_scale = DepthScale::one;
  EmbeddingNorm embedding = EmbeddingNorm::none;

  Residual residual = Residual::add;
  Factor alpha_init = {Factor::Rule::number, 0.05};
  AlphaSharing alpha_sharing = AlphaSharing::channel;
  MapScale map_scale = MapScale::none;

  QkNorm qk = QkNorm::none;
  double p = 2.0;
  bool learn_p = false;
  PSharing p_sharing = PSharing::layer;
  int qk_groups = 1;
  QkScope scope = QkScope::head;
  QkOrder order = QkOrder::before_rope;
  double qk_eps = 1e-12;
  QkAffine qk_affine = QkAffine::none;

  GainSharing gain = GainSharing::none;
  Factor gain_init = {};
  bool learn_gain = true;
  GainOn gain_on = GainOn::queries;
  GainForm gain_form = GainForm::plain;
  double gain_max = std::numeric_limits<double>::infinity();
  Factor logit_scale = {Factor::Rule::inverse_sqrt_d_head};
  RowScale row_scale = RowScale::one;
  double soft_cap = 0.0;

  OutputScale output_scale = OutputScale::none;
  double output_soft_cap = 0.0;
  double z_loss = 0.0;

  Factor stored_scale = {Factor::Rule::init};
  Constraint constraint = Constraint::none;
  ConstraintAxis constraint_axis = ConstraintAxis::embedding;
  double qk_clip = 0.0;
  bool sigma_reparam = false;

  // What the scheme's authors train with, by configuration key; used only where the user said nothing.
  struct Recommendation {
    std::string key, value;
  };
  std::vector<Recommendation> recommended = {};

  // For `normlab schemes` and the docs.
  std::string title = {}, equation = {}, source = {};
};

// The rows, in the order in which they are listed.
const std::vector<NormScheme>& catalogue();
// The row of that name; UsageError with the nearest name when there is none.
const NormScheme& find_scheme(const std::string& name);

void list_fields(NormScheme& scheme, FieldList& list);
// What the fields that are factors may be: some of the rules, and numbers above a limit.
struct FactorField {
  const char* key;
  Factor NormScheme::*factor;
  std::vector<Factor::Rule> rules;
  double above, most;
  const char* expected;

  bool allows(const Factor& factor) const;
};
const std::vector<FactorField>& factor_fields();
// Rejects invalid combinations, with the reason.
void check_scheme(const NormScheme& scheme);
// What a translator, which adds languages to its embeddings and has no scaled output, lacks for this scheme; empty:
// nothing.
std::string why_no_translator(const NormScheme& scheme);

// Initial gain for heads of d_head channels and sequences of `length` tokens. `matched` gives every p the spread of
// logits that p = 2 has with log2(L^2 - L) at initialisation (Gaussian q and k).
struct GainSizes {
  int d_head = 0, n_heads = 1, length = 0, d_model = 0;
};
double initial_gain(const NormScheme& scheme, GainSizes sizes);

// Its fields of attention. The logit scale includes the constants nu of the q and k maps.
AttentionForm attention_form(const NormScheme& scheme, FactorSizes sizes);

// The gain in use, from the value that a checkpoint holds.
double used_gain(const NormScheme& scheme, double stored, GainSizes sizes);

// E ||x_hat||_2^2 of a Gaussian x in R^d divided by its Lp norm: the spread of q_hat . k_hat is this over sqrt(d).
double mean_square_after_lp(double p, int d);

}  // namespace normlab
