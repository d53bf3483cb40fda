#include "normlab/config/kernel_use.h"

namespace normlab {
namespace {

constexpr const char* operators = "PyTorch's operators";

std::string of_stream(const NormScheme& scheme) {
  if (scheme.residual == Residual::lerp_unit) return "kernels/lerp_norm";
  if (scheme.residual != Residual::add) return "kernels/weighted_sum";
  const bool ours = scheme.sublayer == SublayerNorm::layer || scheme.sublayer == SublayerNorm::rms;
  return ours ? "kernels/layer_norm" : operators;
}

std::string of_attention(const NormScheme& scheme) {
  std::string what = "kernels/attention";
  if (scheme.qk != QkNorm::none) what += ", normalised in the same pass";
  return what;
}

}  // namespace

std::vector<KernelUse> kernel_use(const ModelConfig& config, const NormScheme& scheme) {
  if (config.kernels == Kernels::composite) {
    const std::string reason = why_not_fused(config, scheme);
    return {{"everything", std::string(operators) + (reason.empty() ? "" : ", because " + reason)}};
  }
  std::vector<KernelUse> list = {{"attention", of_attention(scheme)},
                                 {"stream and its norm", of_stream(scheme)},
                                 {"linear maps", "kernels/matmul"},
                                 {"activation", "kernels/activation"},
                                 {"loss", scheme.z_loss > 0.0 ? operators : "kernels/cross_entropy"},
                                 {"update", "kernels/adamw"}};
  if (scheme.constraint != Constraint::none) list.back().served_by += ", kernels/unit_vectors in the same pass";
  return list;
}

}  // namespace normlab
