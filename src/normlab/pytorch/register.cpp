// The operators of the Python package, registered with PyTorch. Their autograd formulas, shapes for fake tensors and
// batching rules are in python/normlab/ops.py.
#include <ATen/autocast_mode.h>
#include <torch/autograd.h>
#include <torch/library.h>

#include "normlab/norm/scheme_json.h"
#include "normlab/ops/lp_norm.h"
#include "normlab/pytorch/attention_op.h"
#include "normlab/pytorch/require.h"

namespace normlab {
namespace {

using torch::Tensor;
using Optional = std::optional<Tensor>;

// PyTorch reads the schema from the types, so every argument has a parameter of its own.
#define NORMLAB_ARGUMENTS                                                                                          \
  const Optional &gain, const Optional &learned_p, const Optional &cos, const Optional &sin, const Optional &seed, \
      c10::string_view norm, double p, double eps, double scale, bool causal, bool interleaved, bool rope_first,   \
      double soft_cap, double dropout_p
#define NORMLAB_PACKED                                                                                            \
  {                                                                                                               \
    gain, learned_p, cos, sin, seed, std::string(norm), p, eps, scale, causal, interleaved, rope_first, soft_cap, \
        dropout_p                                                                                                 \
  }

AttentionResult attention_kernel(const Tensor& q, const Tensor& k, const Tensor& v, NORMLAB_ARGUMENTS, bool stats) {
  return attention_op(q, k, v, NORMLAB_PACKED, stats);
}
AttentionGradients attention_backward_kernel(const Tensor& d_o, const Tensor& q, const Tensor& k, const Tensor& v,
                                             const Tensor& o, const Tensor& lse, NORMLAB_ARGUMENTS) {
  return attention_backward_op(d_o, q, k, v, o, lse, NORMLAB_PACKED);
}

// Under autocast: float32 on the CPU, where the fused kernel takes nothing else; elsewhere as
// scaled_dot_product_attention.
AttentionResult attention_autocast(const Tensor& q, const Tensor& k, const Tensor& v, NORMLAB_ARGUMENTS, bool stats) {
  const auto device = q.device().type();
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(
      at::autocast::get_autocast_dispatch_key_from_device_type(device));
  const auto type = q.is_cpu() ? torch::kFloat32 : at::autocast::get_autocast_dtype(device);
  const auto cast = [&](const Tensor& x) { return at::autocast::cached_cast(type, x, device); };
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("normlab::attention", "").typed<decltype(attention_kernel)>();
  return op.call(cast(q), cast(k), cast(v), gain, learned_p, cos, sin, seed, norm, p, eps, scale, causal, interleaved,
                 rope_first, soft_cap, dropout_p, stats);
}

void require_lp(const Tensor& x, double p, int64_t dim, double eps) {
  constexpr const char* lp = "normlab.lp_normalize";
  require(torch::isFloatingType(x.scalar_type()), lp, "x must be of a float type; got ", describe(x));
  require(x.dim() > 0 && dim >= -x.dim() && dim < x.dim(), lp, "dim must be a dimension of x; got ", dim, " for shape ",
          shapes({x}));
  require(p > 0.0, lp, "p must be above 0, inf included; got ", p);
  require(eps > 0.0, lp, "eps must be above 0; got ", eps);
}
torch::ScalarType wide_type(const Tensor& x) {
  return c10::elementSize(x.scalar_type()) < 4 ? torch::kFloat32 : x.scalar_type();
}
Tensor normalised(const Tensor& x, double p, int64_t dim, double eps) {
  return lp_normalize(x.to(wide_type(x)).transpose(dim, -1), p, eps).transpose(dim, -1);
}
Tensor lp_normalize_kernel(const Tensor& x, double p, int64_t dim, double eps) {
  require_lp(x, p, dim, eps);
  return x.numel() == 0 ? torch::empty_like(x) : torch::empty_like(x).copy_(normalised(x, p, dim, eps));
}
Tensor lp_normalize_backward_kernel(const Tensor& dy, const Tensor& x, double p, int64_t dim, double eps) {
  require_lp(x, p, dim, eps);
  require(dy.sizes() == x.sizes(), "normlab.lp_normalize", "the gradient must have the shape of x; got ",
          shapes({dy, x}));
  if (x.numel() == 0) return torch::empty_like(x);
  const WithAutograd with_autograd;
  const Tensor leaf = x.detach().requires_grad_(true), y = normalised(leaf, p, dim, eps);
  const Tensor dx = torch::autograd::grad({y}, {leaf}, {dy.to(y.scalar_type())})[0];
  const torch::NoGradGuard no_grad;
  return torch::empty_like(x).copy_(dx);
}

// All rows, as a list.
std::string catalogue_json() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const NormScheme& row : catalogue()) rows.push_back(scheme_json(row));
  return rows.dump();
}

#define NORMLAB_SCHEMA                                                                                            \
  "Tensor? gain, Tensor? learned_p, Tensor? cos, Tensor? sin, Tensor? seed, str norm, float p, float eps, float " \
  "scale, "                                                                                                       \
  "bool causal, bool interleaved, bool rope_first, float soft_cap, float dropout_p"

}  // namespace

TORCH_LIBRARY(normlab, library) {
  library.def("attention(Tensor q, Tensor k, Tensor v, " NORMLAB_SCHEMA ", bool stats) -> (Tensor, Tensor, Tensor)");
  library.def("attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, " NORMLAB_SCHEMA
              ") -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  library.def("lp_normalize(Tensor x, float p, int dim, float eps) -> Tensor");
  library.def("lp_normalize_backward(Tensor grad, Tensor x, float p, int dim, float eps) -> Tensor");
  library.def("catalogue() -> str", &catalogue_json);
}

TORCH_LIBRARY_IMPL(normlab, CompositeExplicitAutograd, library) {
  library.impl("attention", &attention_kernel);
  library.impl("attention_backward", &attention_backward_kernel);
  library.impl("lp_normalize", &lp_normalize_kernel);
  library.impl("lp_normalize_backward", &lp_normalize_backward_kernel);
}

TORCH_LIBRARY_IMPL(normlab, AutocastCPU, library) { library.impl("attention", &attention_autocast); }
TORCH_LIBRARY_IMPL(normlab, AutocastCUDA, library) { library.impl("attention", &attention_autocast); }

}  // namespace normlab
