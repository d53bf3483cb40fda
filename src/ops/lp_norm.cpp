// With r = |x| / max|x|, s = sum r^p, n = max|x| s^(1/p), y = x / n and w = sign(x) r^(p-1) / s^((p-1)/p):
//   dL/dx = (dL/dy - w (dL/dy . y)) / n,        dL/dp = -(dL/dy . y) d(ln n)/dp,
//   d(ln n)/dp = sum(r^p ln r) / (p s) - ln(s) / p^2.
// Where n < eps the norm is the constant eps: dL/dx = dL/dy / eps, dL/dp = 0.
#include "ops/lp_norm.h"

#include <torch/autograd.h>

#include <cmath>

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The pieces of the equations above, made safe to divide by: a zero vector has peak = sum = root = 1 and is clamped.
struct Parts {
  Tensor peak;     // max|x|
  Tensor r;        // |x| / peak
  Tensor sum;      // s
  Tensor root;     // s^(1/p)
  Tensor clamped;  // n < eps
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
  const Tensor size = torch::maximum(x, -x);  // |x|; abs has no kernel on the meta device
  const Tensor largest = size.amax(-1, /*keepdim=*/true);
  const Tensor one = torch::ones_like(largest);
  parts.peak = torch::where(largest > 0, largest, one);
  parts.r = size / parts.peak;
  parts.sum = is_infinite(p) ? one : torch::where(largest > 0, power(parts.r, p).sum(-1, /*keepdim=*/true), one);
  parts.root = is_infinite(p) ? one : root_of(parts.sum, p);
  parts.clamped = largest * parts.root < eps;
  return parts;
}

// Divided in two steps, because peak * root may overflow where the quotient does not.
Tensor divide(const Tensor& x, const Parts& parts) { return x / parts.peak / parts.root; }
Tensor quotient(const Tensor& x, const Parts& parts, double eps) {
  return torch::where(parts.clamped, x / eps, divide(x, parts));
}

// w of the equations; zero where r is zero, also for p < 1 where r^(p-1) is infinite.
template <class P>
Tensor norm_gradient(const Tensor& x, const Parts& parts, const P& p) {
  if (is_infinite(p)) {
    const Tensor first = parts.r.argmax(-1, /*keepdim=*/true);
    return torch::zeros_like(x).scatter(-1, first, x.gather(-1, first).sign());
  }
  const Tensor w = x.sign() * power(parts.r, p - 1.0) / power(parts.root, p - 1.0);
  return torch::where(parts.r == 0, torch::zeros_like(w), w);
}

template <class P>
Tensor gradient_of_x(const Tensor& x, const P& p, const Parts& parts, const Tensor& dy, double eps) {
  const Tensor y = quotient(x, parts, eps);
  const Tensor along = (dy * y).sum(-1, /*keepdim=*/true);
  return torch::where(parts.clamped, dy / eps, divide(dy - norm_gradient(x, parts, p) * along, parts));
}

struct FixedP : torch::autograd::Function<FixedP> {
  static Tensor forward(AutogradContext* context, const Tensor& x, double p, double eps) {
    context->save_for_backward({x});
    context->saved_data["p"] = p;
    context->saved_data["eps"] = eps;
    return quotient(x, parts_of(x, p, eps), eps);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const Tensor x = context->get_saved_variables()[0];
    const double p = context->saved_data["p"].toDouble(), eps = context->saved_data["eps"].toDouble();
    return {gradient_of_x(x, p, parts_of(x, p, eps), grads[0], eps), Tensor(), Tensor()};
  }
};

struct LearnedP : torch::autograd::Function<LearnedP> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& p, double eps) {
    context->save_for_backward({x, p});
    context->saved_data["eps"] = eps;
    return quotient(x, parts_of(x, p, eps), eps);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &p = saved[1], &dy = grads[0];
    const double eps = context->saved_data["eps"].toDouble();
    const Parts parts = parts_of(x, p, eps);
    const Tensor log_r = torch::where(parts.r > 0, parts.r.log(), torch::zeros_like(parts.r));
    const Tensor dlog_n = (power(parts.r, p) * log_r).sum(-1, true) / (p * parts.sum) - parts.sum.log() / (p * p);
    const Tensor along = (dy * quotient(x, parts, eps)).sum(-1, true);
    const Tensor dp = torch::where(parts.clamped, torch::zeros_like(along), -along * dlog_n);
    return {gradient_of_x(x, p, parts, dy, eps), dp.sum_to_size(p.sizes()), Tensor()};
  }
};

}  // namespace

Tensor lp_normalize(const Tensor& x, double p, double eps) { return FixedP::apply(x, p, eps); }
Tensor lp_normalize(const Tensor& x, const Tensor& p, double eps) { return LearnedP::apply(x, p, eps); }

}  // namespace normlab
