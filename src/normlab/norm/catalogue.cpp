// The catalogue: one row per scheme. A new scheme is a row here; a new mechanism is an enumerator in scheme.h as well.
#include "normlab/base/error.h"
#include "normlab/base/suggest.h"
#include "normlab/base/text.h"
#include "normlab/norm/scheme.h"

namespace normlab {
namespace {

std::vector<NormScheme> make_catalogue() {
  constexpr Factor log2_pairs{Factor::Rule::log2_pairs}, sqrt_d_head{Factor::Rule::sqrt_d_head},
      inverse_sqrt_d_model{Factor::Rule::inverse_sqrt_d_model};
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
          .logit_scale = {},
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
          .logit_scale = {},
          .title = "Lp-normalised queries and keys with a learnable gain, any p > 0 or inf",
          .equation = "softmax(g q_hat k_hat^T) v,  x_hat = x / ||x||_p,  ||x||_p = (sum |x_h|^p)^(1/p)",
          .source = "Lopez-Rubio et al. 2026, arXiv 2602.05006; initial gain, its sharing and eps are our choice",
      },
      {
          .name = "rms",
          .qk = QkNorm::rms,
          .qk_eps = 1e-6,
          .qk_affine = QkAffine::shared,
          .title = "RMS norm of queries and keys over a head, channel gains shared by the heads",
          .equation = "softmax(q_hat k_hat^T / sqrt(d_head)) v,  x_hat = w o x / sqrt(mean(x^2) + eps)",
          .source = "Qwen3, arXiv 2505.09388, as in Hugging Face transformers",
      },
      {
          .name = "rms-gainless",
          .qk = QkNorm::rms,
          .qk_eps = 1e-6,
          .logit_scale = {Factor::Rule::number, 0.1},
          .title = "RMS norm of queries and keys over a head, without gains",
          .equation = "softmax(0.1 q_hat k_hat^T) v,  x_hat = x / sqrt(mean(x^2) + eps)",
          .source = "modded-nanogpt, train_gpt.py: the scale at the start of its training; eps is our choice",
      },
      {
          .name = "olmo2",
          .sublayer = SublayerNorm::rms,
          .placement = NormPlacement::branch,
          .qk = QkNorm::rms,
          .scope = QkScope::all_heads,
          .qk_eps = 1e-5,
          .qk_affine = QkAffine::own,
          .recommended = {{"model.activation", "swiglu"}, {"model.positions", "rope"}, {"model.tied_head", "false"}},
          .title = "RMS norm of queries and keys over all heads together, RMS norm of each branch's output",
          .equation = "x + norm(branch(x));  softmax(q_hat k_hat^T / sqrt(d_head)) v,  "
                      "x_hat = w o x / sqrt(mean(x^2) + eps) over all heads",
          .source = "OLMo 2, arXiv 2501.00656, as in Hugging Face transformers",
      },
      {
          .name = "layernorm",
          .qk = QkNorm::layer,
          .qk_eps = 1e-6,
          .qk_affine = QkAffine::shared,
          .title = "LayerNorm of queries and keys over a head",
          .equation = "softmax(LN(q) LN(k)^T / sqrt(d_head)) v",
          .source = "ViT-22B, Dehghani et al. 2023, arXiv 2302.05442; sharing of the gains and eps are our choice",
      },
      {
          .name = "cosine",
          .qk = QkNorm::lp,
          .p = 2.0,
          .gain = GainSharing::head,
          .gain_init = {Factor::Rule::number, 10.0},
          .gain_form = GainForm::exp,
          .gain_max = 100.0,
          .logit_scale = {},
          .title = "cosine of queries and keys with a clamped temperature for each head",
          .equation = "softmax(exp(min(tau, ln 100)) cos(q, k)) v,  tau0 = ln 10",
          .source = "Swin Transformer V2, Liu et al. 2022, arXiv 2111.09883, without its position bias",
      },
      {
          .name = "grouped",
          .qk = QkNorm::lp,
          .p = 2.0,
          .qk_groups = 2,
          .logit_scale = {Factor::Rule::number, 10.0},
          .title = "l2 norm of groups of channels of queries and keys, fixed scale",
          .equation = "softmax(10 q_hat k_hat^T) v,  x_hat = each group of x / its l2 norm",
          .source = "x-transformers, attn_qk_norm; two groups are our choice (its default is one)",
      },
      {
          .name = "softcap",
          .soft_cap = 50.0,
          .output_soft_cap = 30.0,
          .title = "soft caps on the logits of attention and of the output",
          .equation = "softmax(50 tanh(S / 50)) v,  S = q k^T / sqrt(d_head);  output 30 tanh(z / 30)",
          .source = "Gemma 2, arXiv 2408.00118; caps as in x-transformers",
      },
      {
          .name = "ssmax",
          .gain = GainSharing::head,
          .gain_init = {Factor::Rule::number, 0.43},
          .row_scale = RowScale::log_n,
          .title = "logits that grow with the logarithm of the number of visible keys",
          .equation = "softmax(s ln(n) S) v,  S = q k^T / sqrt(d_head),  n = visible keys,  s0 = 0.43 per head",
          .source = "Scalable-Softmax, Nakanishi 2025, arXiv 2501.19399; s0 is our choice, after its figure 1",
      },
      {
          .name = "qk-clip",
          .qk_clip = 100.0,
          .title = "W_q and W_k of a head scaled down after a step whose logits went too high",
          .equation = "gamma = min(1, tau / max S),  W_q, W_k <- sqrt(gamma) W_q, sqrt(gamma) W_k,  tau = 100",
          .source = "Kimi K2, arXiv 2507.20534, which trains with Muon (MuonClip): optim.optimizer=muon; "
                    "with grouped keys W_q <- gamma W_q is our choice",
      },
      {
          .name = "sigma-reparam",
          .sigma_reparam = true,
          .title = "every linear map of a block divided by its spectral norm, with a learnable scale",
          .equation = "W_hat = gamma W / sigma(W),  sigma(W) = u^T W v after one power iteration per step",
          .source = "Zhai et al. 2023, arXiv 2303.06296, code apple/ml-sigma-reparam; gamma0 = sigma(W0)",
      },
      {
          .name = "z-loss",
          .z_loss = 1e-4,
          .title = "a penalty on the log-partition of the output",
          .equation = "loss + 1e-4 mean((ln Z)^2),  Z = sum over tokens of exp(logit)",
          .source = "PaLM, arXiv 2204.02311; coefficient as Wortsman et al. 2023, arXiv 2309.14322",
      },
      {
          .name = "scalenorm",
          .sublayer = SublayerNorm::scale,
          .title = "ScaleNorm around each sublayer",
          .equation = "norm(x) = g x / max(||x||_2, eps),  g0 = sqrt(d_model), one g per norm",
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
      {
          .name = "dyt",
          .sublayer = SublayerNorm::dyt,
          .embedding = EmbeddingNorm::scaled,
          .recommended = {{"model.init", "small"}},
          .title = "dynamic tanh in place of each sublayer norm",
          .equation = "norm(x) = gamma o tanh(a x) + beta,  a0 = 0.5;  x = s e + position,  s0 = sqrt(d_model)",
          .source = "DyT, Zhu et al. 2025, arXiv 2503.10622, its code's default a0 and scale of embeddings; "
                    "SmallInit, by which the stream starts at a size of 1, is our choice",
      },
      {
          .name = "ln-scaling",
          .sublayer_scale = DepthScale::inverse_sqrt_layer,
          .title = "LayerNorm divided by the square root of its layer's number",
          .equation = "norm_l(x) = LN(x) / sqrt(l),  l = 1, 2, ...",
          .source = "The Curse of Depth, Sun et al. 2025, arXiv 2502.05795",
      },
      {
          .name = "gpt+",
          .sublayer = SublayerNorm::rms,
          .sublayer_eps = 1e-6,
          .qk = QkNorm::rms,
          .qk_eps = 1e-6,
          .qk_affine = QkAffine::shared,
          .recommended = {{"model.activation", "swiglu"},
                          {"model.positions", "rope"},
                          {"model.tied_head", "false"},
                          {"optim.weight_decay", "0.1"}},
          .title = "SwiGLU, RoPE, RMSNorm and RMS norm of queries and keys: the baseline of anGPT",
          .equation = "x + branch(rms(x));  softmax(q_hat k_hat^T / sqrt(d_head)) v,  "
                      "x_hat = w o x / sqrt(mean(x^2) + eps)",
          .source = "Franke et al. 2025, arXiv 2505.22014; which QK norm, eps and the untied head are our choice",
      },
      {
          .name = "ngpt",
          .sublayer = SublayerNorm::none,
          .residual = Residual::lerp_unit,
          .map_scale = MapScale::s_uv,
          .qk = QkNorm::lp,
          .p = 2.0,
          .order = QkOrder::after_rope,
          .gain = GainSharing::channel,
          .gain_on = GainOn::both,
          .logit_scale = sqrt_d_head,
          .output_scale = OutputScale::s_z,
          .stored_scale = inverse_sqrt_d_model,
          .constraint = Constraint::unit,
          .recommended = {{"model.activation", "swiglu"},
                          {"model.positions", "rope"},
                          {"model.tied_head", "false"},
                          {"optim.weight_decay", "0"},
                          {"optim.warmup_steps", "0"}},
          .title = "nGPT: stream, weights, queries and keys on the unit sphere",
          .equation = "h <- unit(h + alpha o (unit(branch(h)) - h));  "
                      "softmax(sqrt(d_head) (s_qk o q_hat) (s_qk o k_hat)^T) v,  x_hat = x / ||x||_2;  "
                      "u s_u sqrt(d_model), v s_v sqrt(d_model) in SwiGLU;  logits s_z o (W h)",
          .source = "nGPT, Loshchilov et al. 2024, arXiv 2410.01131, defaults of NVIDIA/ngpt",
      },
      {
          .name = "angpt",
          .sublayer = SublayerNorm::none,
          .residual = Residual::lerp_nu,
          .alpha_init = {Factor::Rule::inverse_n_layers},
          .map_scale = MapScale::nu,
          .qk = QkNorm::lp,
          .p = 2.0,
          .order = QkOrder::after_rope,
          .gain = GainSharing::channel,
          .gain_on = GainOn::both,
          .logit_scale = sqrt_d_head,
          .output_scale = OutputScale::s_z,
          .stored_scale = inverse_sqrt_d_model,
          .constraint = Constraint::ball,
          .constraint_axis = ConstraintAxis::rows,
          .recommended = {{"model.activation", "swiglu"},
                          {"model.positions", "rope"},
                          {"model.tied_head", "false"},
                          {"optim.weight_decay", "0"},
                          {"optim.warmup_steps", "0"}},
          .title = "anGPT: norms held near 1 by constants, rows of weights at most 1 long",
          .equation = "h <- nu(alpha) o (h + alpha o (branch(h) - h)),  nu(alpha) = 1/sqrt(alpha^2 + (1-alpha)^2);  "
                      "softmax(sqrt(d_head) (s_qk o q_hat) (s_qk o k_hat)^T) v,  x_hat = x / ||x||_2;  "
                      "every map times its nu;  logits s_z o (W h)",
          .source = "anGPT, Franke et al. 2025, arXiv 2505.22014; alpha_init, its sharing and the logit scale are our "
                    "choice, and so is s_qk: the paper keeps the QK norm of GPT+, whose gains are learnable, and "
                    "without one no logit could exceed sqrt(d_head)",
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
  const auto near = suggest(name, names);
  throw UsageError("norm.scheme",
                   concat("there is no scheme '", name, "'. ",
                          near ? concat("Did you mean '", *near, "'?") : "`normlab schemes` lists them all."));
}

}  // namespace normlab
