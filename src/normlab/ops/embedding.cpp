#include "normlab/ops/embedding.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "normlab/kernels/embedding.h"
#include "normlab/ops/accumulate.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedEmbedding : torch::autograd::Function<FusedEmbedding> {
  static Tensor forward(AutogradContext* context, const Tensor& table, const Tensor& index) {
    context->save_for_backward({table, index});
    return torch::embedding(table, index);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &table = saved[0], index = saved[1].contiguous(), dx = grads[0].contiguous();
    const Tensor so_far = gradient_so_far(table);
    const Tensor to = so_far.defined() ? so_far : torch::zeros_like(table);
    const EmbeddingBackward args{.tokens = index.const_data_ptr<int64_t>(),
                                 .rows = static_cast<size_t>(index.numel()),
                                 .cols = static_cast<size_t>(table.size(1)),
                                 .dx = dx.const_data_ptr<float>(),
                                 .d_table = to.mutable_data_ptr<float>()};
    at::parallel_for(0, table.size(0), /*grain_size=*/1 << 12, [&](int64_t begin, int64_t end) {
      embedding_backward(args, {static_cast<size_t>(begin), static_cast<size_t>(end)});
    });
    return {so_far.defined() ? Tensor() : to, Tensor()};
  }
};

}  // namespace

Tensor embedding(const Tensor& table_vc, const Tensor& index, bool fused) {
  return fused ? FusedEmbedding::apply(table_vc, index) : torch::embedding(table_vc, index);
}

}  // namespace normlab
