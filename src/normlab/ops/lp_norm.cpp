// With r = |x| / max|x|, s = sum r^p, n = max|x| s^(1/p), y = x / n and w = sign(x) r^(p-1) / s^((p-1)/p):
//   dL/dx = (dL/dy - w (dL/dy . y)) / n,        dL/dp = -(dL/dy . y) d(ln n)/dp,
//   d(ln n)/dp = sum(r^p ln r) / (p s) - ln(s) / p^2.
// Where n < eps the norm is the constant eps: dL/dx = dL/dy / eps, dL/dp = 0.
#include "normlab/ops/lp_norm.h"

#include <torch/autograd.h>

#include <cmath>

#include "normlab/ops/precision.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The pieces of the equations above. No torch::where: libtorch without Python has no meta kernel for it.
struct Parts {
  Tensor r;      // |x| / max|x|, zero for a zero vector
  Tensor sum;    // s, one for a zero vector
  Tensor root;   // s^(1/p)
  Tensor n;      // max(||x||_p, eps)
  Tensor moves;  // 1 where the norm depends on x, 0 where it is the constant eps
};

Tensor power(const Tensor& r, const Tensor& p) { return r.pow(p); }
Tensor power(const Tensor& r, double p) {
  if (p == 1.0) return r;
  if (p == 2.0) return r * r;
  return r.pow(p);
}
Tensor root_of(const Tensor& sum, const Tensor& p) { return sum.pow(p.reciprocal()); }
Tensor root_of(const Tensor& sum, double p) { return p == 2.0 ? sum.sqrt() : sum.pow(1.0 / p); }
bool is_infinite(double p) { return std::isinf(p); }
bool is_infinite(const Tensor&) { return false; }

template <class P>
Parts parts_of(const Tensor& x, const P& p, double eps) {
  Parts parts;
  const Tensor size = torch::maximum(x, -x);  // abs has no meta kernel either
  const Tensor largest = size.amax(-1, /*keepdim=*/true);
  const Tensor is_zero = largest.eq(0).to(x.scalar_type());
  parts.r = size / (largest + is_zero);
  parts.sum = is_infinite(p) ? torch::ones_like(largest) : power(parts.r, p).sum(-1, /*keepdim=*/true) + is_zero;
  parts.root = is_infinite(p) ? parts.sum : root_of(parts.sum, p);
  const Tensor norm = largest * parts.root;
  parts.n = norm.clamp_min(eps);
  parts.moves = norm.ge(eps).to(x.scalar_type());
  return parts;
}

// r where it is needed in a negative power or a logarithm; entries that are zero are multiplied by zero afterwards.
Tensor above_zero(const Tensor& r) { return r.clamp_min(1e-38); }

// w of the equations; zero where x is zero, also for p < 1 where r^(p-1) has no limit.
template <class P>
Tensor norm_gradient(const Tensor& x, const Parts& parts, const P& p) {
  if (is_infinite(p)) {
    const Tensor first = parts.r.argmax(-1, /*keepdim=*/true);
    return torch::zeros_like(x).scatter(-1, first, x.gather(-1, first).sign());
  }
  return x.sign() * power(above_zero(parts.r), p - 1.0) / power(parts.root, p - 1.0);
}

template <class P>
Tensor gradient_of_x(const Tensor& x, const P& p, const Parts& parts, const Tensor& dy) {
  const Tensor along = (dy * x / parts.n).sum(-1, /*keepdim=*/true) * parts.moves;
  return (dy - norm_gradient(x, parts, p) * along) / parts.n;
}

struct FixedP : torch::autograd::Function<FixedP> {
  static Tensor forward(AutogradContext* context, const Tensor& x, double p, double eps) {
    context->save_for_backward({x});
    context->saved_data["p"] = p;
    context->saved_data["eps"] = eps;
    return x / parts_of(x, p, eps).n;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const Tensor x = context->get_saved_variables()[0];
    const double p = context->saved_data["p"].toDouble(), eps = context->saved_data["eps"].toDouble();
    return {gradient_of_x(x, p, parts_of(x, p, eps), grads[0]), Tensor(), Tensor()};
  }
};

struct LearnedP : torch::autograd::Function<LearnedP> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& p, double eps) {
    context->save_for_backward({x, p});
    context->saved_data["eps"] = eps;
    return x / parts_of(x, p, eps).n;
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &p = saved[1], &dy = grads[0];
    const double eps = context->saved_data["eps"].toDouble();
    const Parts parts = parts_of(x, p, eps);
    const Tensor log_r = above_zero(parts.r).log();
    const Tensor dlog_n = (power(parts.r, p) * log_r).sum(-1, true) / (p * parts.sum) - parts.sum.log() / (p * p);
    const Tensor dp = -(dy * x / parts.n).sum(-1, true) * dlog_n * parts.moves;
    return {gradient_of_x(x, p, parts, dy), dp.sum_to_size(p.sizes()), Tensor()};
  }
};

}  // namespace

Tensor lp_normalize(const Tensor& x, double p, double eps) { return FixedP::apply(widened(x), p, eps); }
Tensor lp_normalize(const Tensor& x, const Tensor& p, double eps) { return LearnedP::apply(widened(x), p, eps); }

}  // namespace normlab
