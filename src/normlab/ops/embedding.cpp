#include "normlab/ops/embedding.h"

#include <ATen/Parallel.h>

#include "normlab/kernels/embedding.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/first_derivative.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedEmbedding : torch::autograd::Function<FusedEmbedding> {
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& index, GradientSink* sink) {
    if (context) {
      context->save_for_backward({table, index});
      context->saved_data["sum"] = sink ? sink->find(table) : Tensor();
    }
    return torch::embedding(table, index);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("embedding");
    const auto saved = context->get_saved_variables();
    const Tensor &table = saved[0], index = saved[1].contiguous(), dx = grads[0].contiguous();
    const Tensor sum = context->saved_data["sum"].toTensor();
    const Tensor to = sum.defined() ? sum : torch::zeros_like(table);
    const EmbeddingBackward args{.tokens = index.const_data_ptr<int64_t>(),
                                 .rows = static_cast<size_t>(index.numel()),
                                 .cols = static_cast<size_t>(table.size(1)),
                                 .dx = dx.const_data_ptr<float>(),
                                 .d_table = to.mutable_data_ptr<float>()};
    at::parallel_for(0, table.size(0), /*grain_size=*/1 << 12, [&](int64_t begin, int64_t end) {
      embedding_backward(args, {static_cast<size_t>(begin), static_cast<size_t>(end)});
    });
    return {sum.defined() ? Tensor() : to, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor embedding(const Tensor& table_vc, const Tensor& index, bool fused, GradientSink* sink) {
  return fused ? apply_fused<FusedEmbedding>(table_vc, index, sink) : torch::embedding(table_vc, index);
}

}  // namespace normlab
