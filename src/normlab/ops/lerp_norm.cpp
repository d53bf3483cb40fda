// Equations: kernels/lerp_norm.h.
#include "normlab/ops/lerp_norm.h"

#include "normlab/kernels/column_sums.h"
#include "normlab/kernels/lerp_norm.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/first_derivative.h"
#include "normlab/ops/float_data.h"
#include "normlab/ops/lp_norm.h"
#include "normlab/ops/parallel_rows.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double unit_eps = 1e-12;  // of the composite form: zero rows stay zero

struct FusedLerpNorm : torch::autograd::Function<FusedLerpNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& h_in, const Tensor& branch_in, const Tensor& alpha_in) {
    const Tensor h = h_in.contiguous(), branch = branch_in.contiguous(), alpha = alpha_in.contiguous();
    const auto cols = static_cast<size_t>(h.size(-1)), rows = static_cast<size_t>(h.numel()) / cols;
    const Tensor out = torch::empty_like(h), b_scale = torch::empty({static_cast<int64_t>(rows)}, h.options()),
                 z_scale = torch::empty_like(b_scale);
    const LerpForward args{.h = data(h),
                           .branch = data(branch),
                           .alpha = data(alpha),
                           .out = mutable_data(out),
                           .b_scale = mutable_data(b_scale),
                           .z_scale = mutable_data(z_scale)};
    parallel_rows(rows, cols, [&](RowRange range) { lerp_norm_forward(args, cols, range); });
    if (context) context->save_for_backward({h, branch, alpha, out, b_scale, z_scale});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("lerp_norm");
    const auto saved = context->get_saved_variables();
    const Tensor &h = saved[0], d_out = grads[0].contiguous();
    const auto cols = static_cast<size_t>(h.size(-1)), rows = static_cast<size_t>(h.numel()) / cols;
    const auto blocks = static_cast<int64_t>(row_blocks(rows));
    const Tensor dh = torch::empty_like(h), d_branch = torch::empty_like(h),
                 partial = torch::empty({blocks, h.size(-1)}, h.options()),
                 d_alpha = torch::empty({h.size(-1)}, h.options());
    const LerpBackward args{.h = data(h),
                            .branch = data(saved[1]),
                            .alpha = data(saved[2]),
                            .out = data(saved[3]),
                            .b_scale = data(saved[4]),
                            .z_scale = data(saved[5]),
                            .d_out = data(d_out),
                            .dh = mutable_data(dh),
                            .d_branch = mutable_data(d_branch),
                            .d_alpha = mutable_data(partial)};
    parallel_rows(rows, cols, [&](RowRange range) { lerp_norm_backward(args, cols, range); });
    column_sums(data(partial), cols, {0, static_cast<size_t>(blocks)}, cols, mutable_data(d_alpha));
    return {dh, d_branch, d_alpha};
  }
};

}  // namespace

Tensor lerp_norm(const Tensor& h, const Tensor& branch, const Tensor& alpha, bool fused) {
  if (fused) return apply_fused<FusedLerpNorm>(h, branch, alpha.expand({h.size(-1)}));
  return lp_normalize(h + alpha * (lp_normalize(branch, 2.0, unit_eps) - h), 2.0, unit_eps);
}

}  // namespace normlab
