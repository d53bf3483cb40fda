// The catalogue: one row a scheme. A new scheme is a row here; a new mechanism is an enumerator in scheme.h as well.
#include "base/error.h"
#include "base/text.h"
#include "norm/scheme.h"

namespace normlab {
namespace {

std::vector<NormScheme> make_catalogue() {
  constexpr GainInit log2_pairs{.rule = GainInit::Rule::log2_pairs, .value = 0.0};
  return {
      {
          .name = "none",
          .title = "scaled dot product, no normalisation of queries and keys",
          .equation = "softmax(q k^T / sqrt(d_head)) v",
          .source = "Vaswani et al. 2017, arXiv 1706.03762",
      },
      {
          .name = "qknorm",
          .qk = QkNorm::lp,
          .p = 2.0,
          .gain = GainSharing::layer,
          .gain_init = log2_pairs,
          .logit_scale = LogitScale::one,
          .title = "l2-normalised queries and keys with a learnable gain",
          .equation = "softmax(g q_hat k_hat^T) v,  x_hat = x / ||x||_2,  g0 = log2(L^2 - L)",
          .source = "Henry et al. 2020, arXiv 2010.04245",
      },
      {
          .name = "lp",
          .qk = QkNorm::lp,
          .p = 3.0,
          .gain = GainSharing::layer,
          .gain_init = log2_pairs,
          .logit_scale = LogitScale::one,
          .title = "Lp-normalised queries and keys with a learnable gain, any p > 0 or inf",
          .equation = "softmax(g q_hat k_hat^T) v,  x_hat = x / ||x||_p,  ||x||_p = (sum |x_h|^p)^(1/p)",
          .source = "Lopez-Rubio et al. 2026, arXiv 2602.05006; initial gain, its sharing and eps are our choice",
      },
      {
          .name = "scalenorm",
          .sublayer = SublayerNorm::scale,
          .title = "ScaleNorm around each sublayer",
          .equation = "norm(x) = g x / max(||x||_2, eps),  g0 = sqrt(d_model), one g a norm",
          .source = "Nguyen and Salazar 2019, arXiv 1910.05895",
      },
      {
          .name = "fixnorm",
          .sublayer = SublayerNorm::scale,
          .embedding = EmbeddingNorm::fixnorm,
          .title = "ScaleNorm with embeddings of unit length",
          .equation = "x = sqrt(d_model) e_hat + position,  logits = h . e_hat,  e_hat = e / ||e||_2",
          .source = "Nguyen and Salazar 2019, arXiv 1910.05895, without its output bias",
      },
  };
}

}  // namespace

const std::vector<NormScheme>& catalogue() {
  static const std::vector<NormScheme> rows = make_catalogue();
  return rows;
}

const NormScheme& find_scheme(const std::string& name) {
  std::vector<std::string> names;
  for (const NormScheme& row : catalogue()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  const auto near = nearest(name, names);
  throw UsageError("norm.scheme", str("there is no scheme '", name, "'. ",
                                      near ? str("Did you mean '", *near, "'?") : "`normlab schemes` lists them all."));
}

}  // namespace normlab
