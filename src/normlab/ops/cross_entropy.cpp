#include "normlab/ops/cross_entropy.h"

#include <torch/autograd.h>
#include <torch/csrc/autograd/graph_task.h>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/kernels/cross_entropy.h"
#include "normlab/ops/first_derivative.h"
#include "normlab/ops/parallel_rows.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void require_targets(const Tensor& targets, int64_t n, int64_t vocab, int64_t least) {
  if (targets.numel() != n || targets.scalar_type() != torch::kInt64)
    throw Error("cross_entropy", concat("expected ", n, " int64 targets; got ", targets.numel(), "."));
  const int64_t* token = targets.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < n; ++i)
    if (token[i] < least || token[i] >= vocab)
      throw Error("cross_entropy",
                  concat("target ", i, " is ", token[i], ", expected ", least, " .. ", vocab - 1, "."));
}

struct FusedCrossEntropy : torch::autograd::Function<FusedCrossEntropy> {
  // The mean over the rows, or with `sum` their sum.
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& targets, double smoothing,
                        bool sum, bool with_gradient) {
    const int64_t n = logits.size(0);
    const CrossEntropySpec spec{.vocab = static_cast<size_t>(logits.size(1)),
                                .smoothing = static_cast<float>(smoothing),
                                .gradient = with_gradient,
                                .gradient_scale = sum ? 1.0F : 1.0F / static_cast<float>(n)};
    const Tensor losses = torch::empty({n}, logits.options());
    parallel_rows(static_cast<size_t>(n), spec.vocab, [&](RowRange rows) {
      cross_entropy(spec, logits.mutable_data_ptr<float>(), targets.const_data_ptr<int64_t>(),
                    losses.mutable_data_ptr<float>(), rows);
    });
    if (with_gradient) context->save_for_backward({logits.detach()});
    return sum ? losses.sum() : losses.mean();
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("cross_entropy");
    const Tensor gradient = context->get_saved_variables()[0];
    // In place, unless a retained graph is to give the gradient again.
    const bool again = torch::autograd::get_current_graph_task_keep_graph();
    return {again ? gradient * grads[0] : gradient.mul_(grads[0]), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

bool wants_gradient(const Tensor& logits) { return torch::GradMode::is_enabled() && logits.requires_grad(); }

}  // namespace

Tensor cross_entropy(Tensor&& logits_nv, const Tensor& targets_n, bool fused) {
  if (!fused) return torch::cross_entropy_loss(logits_nv, targets_n);
  const Tensor logits = logits_nv.contiguous(), targets = targets_n.contiguous();
  require_targets(targets, logits.size(0), logits.size(1), 0);
  return FusedCrossEntropy::apply(logits, targets, /*smoothing=*/0.0, /*sum=*/false, wants_gradient(logits));
}

Tensor cross_entropy_sum(Tensor&& logits_nv, const Tensor& targets_n, const SummedEntropy& how) {
  const Tensor logits = logits_nv.contiguous(), targets = targets_n.contiguous();
  if (how.fused) {
    require_targets(targets, logits.size(0), logits.size(1), -1);
    return FusedCrossEntropy::apply(logits, targets, how.smoothing, /*sum=*/true, wants_gradient(logits));
  }
  return torch::cross_entropy_loss(logits, targets, /*weight=*/{}, at::Reduction::Sum, /*ignore_index=*/-1,
                                   how.smoothing);
}

}  // namespace normlab
