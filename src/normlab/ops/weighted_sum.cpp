// Equations: kernels/weighted_sum.h.
#include "normlab/ops/weighted_sum.h"

#include "normlab/kernels/column_sums.h"
#include "normlab/kernels/weighted_sum.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/first_derivative.h"
#include "normlab/ops/float_data.h"
#include "normlab/ops/parallel_rows.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedWeightedSum : torch::autograd::Function<FusedWeightedSum> {
  static Tensor forward(AutogradContext* context, const Tensor& h_in, const Tensor& a_in, const Tensor& b_in,
                        const Tensor& c_in) {
    const Tensor h = h_in.contiguous(), a = a_in.contiguous(), b = b_in.contiguous(), c = c_in.contiguous();
    const auto cols = static_cast<size_t>(h.size(-1)), rows = static_cast<size_t>(h.numel()) / cols;
    const Tensor y = torch::empty_like(h);
    const WeightedSum args{.h = data(h), .b = data(b), .a = data(a), .c = data(c)};
    parallel_rows(rows, cols, [&](RowRange range) { weighted_sum_forward(args, mutable_data(y), cols, range); });
    if (context) context->save_for_backward({h, a, b, c});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("weighted_sum");
    const auto saved = context->get_saved_variables();
    const Tensor &h = saved[0], &a = saved[1], &b = saved[2], &c = saved[3], dy = grads[0].contiguous();
    const auto cols = static_cast<size_t>(h.size(-1)), rows = static_cast<size_t>(h.numel()) / cols;
    const size_t blocks = row_blocks(rows);
    const Tensor dh = torch::empty_like(h), db = torch::empty_like(h),
                 partial_a = torch::empty({static_cast<int64_t>(blocks), h.size(-1)}, h.options()),
                 partial_c = torch::empty_like(partial_a);
    const WeightedSum args{.h = data(h), .b = data(b), .a = data(a), .c = data(c)};
    const WeightedSumGrads to{.dy = data(dy),
                              .dh = mutable_data(dh),
                              .db = mutable_data(db),
                              .da = mutable_data(partial_a),
                              .dc = mutable_data(partial_c)};
    parallel_rows(rows, cols, [&](RowRange range) { weighted_sum_backward(args, to, cols, range); });
    const auto summed = [&](const Tensor& partial) {
      const Tensor sums = torch::empty({h.size(-1)}, h.options());
      column_sums(data(partial), cols, {0, blocks}, cols, mutable_data(sums));
      return sums;
    };
    return {dh, summed(partial_a), db, summed(partial_c)};
  }
};

}  // namespace

Tensor weighted_sum(const WeightedPair& of, bool fused) {
  if (!fused) return of.h * of.a + of.b * of.c;
  const int64_t cols = of.h.size(-1);
  return apply_fused<FusedWeightedSum>(of.h, of.a.expand({cols}), of.b, of.c.expand({cols}));
}

}  // namespace normlab
