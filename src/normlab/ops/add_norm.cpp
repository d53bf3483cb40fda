#include "normlab/ops/add_norm.h"

#include "normlab/kernels/column_sums.h"
#include "normlab/kernels/layer_norm.h"
#include "normlab/ops/apply_fused.h"
#include "normlab/ops/first_derivative.h"
#include "normlab/ops/float_data.h"
#include "normlab/ops/lp_norm.h"
#include "normlab/ops/parallel_rows.h"
#include "normlab/ops/precision.h"

namespace normlab {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Everything of a call but its tensors, kept from forward to backward.
struct AddNormCall : torch::CustomClassHolder {
  NormSpec spec;
  size_t rows = 0;
  bool has_branch = false;
};

struct FusedAddNorm : torch::autograd::Function<FusedAddNorm> {
  static variable_list forward(AutogradContext* context, const Tensor& x_in, const std::optional<Tensor>& branch_in,
                               const std::optional<Tensor>& weight_in, const std::optional<Tensor>& bias_in,
                               const c10::intrusive_ptr<AddNormCall>& call) {
    const Tensor x = x_in.contiguous(), branch = branch_in ? branch_in->contiguous() : Tensor();
    const Tensor weight = weight_in.value_or(Tensor()), bias = bias_in.value_or(Tensor());
    const Tensor sum = branch.defined() ? torch::empty_like(x) : Tensor(), y = torch::empty_like(x);
    const auto per_row = [&] { return torch::empty({static_cast<int64_t>(call->rows)}, x.options()); };
    const Tensor mean = call->spec.rms ? Tensor() : per_row(), rstd = per_row();
    NormSpec spec = call->spec;
    spec.weight = data(weight), spec.bias = data(bias);
    const NormForward args{.x = data(x),
                           .branch = data(branch),
                           .sum = mutable_data(sum),
                           .y = mutable_data(y),
                           .mean = mutable_data(mean),
                           .rstd = mutable_data(rstd)};
    parallel_rows(call->rows, spec.cols, [&](RowRange rows) { norm_forward(spec, args, rows); });
    if (context) {
      context->save_for_backward({branch.defined() ? sum : x, mean, rstd, weight, bias});
      context->saved_data["call"] = c10::IValue::make_capsule(call);
      context->set_materialize_grads(false);
    }
    return branch.defined() ? variable_list{y, sum} : variable_list{y};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    require_first_derivative("add_norm");
    const auto saved = context->get_saved_variables();
    const Tensor &s = saved[0], &mean = saved[1], &rstd = saved[2], &weight = saved[3], &bias = saved[4];
    const auto call = c10::static_intrusive_pointer_cast<AddNormCall>(context->saved_data["call"].toCapsule());
    const Tensor dy = grads[0].defined() ? grads[0].contiguous() : torch::zeros_like(s);
    const Tensor d_residual = grads.size() > 1 && grads[1].defined() ? grads[1].contiguous() : Tensor();
    NormSpec spec = call->spec;
    spec.weight = data(weight), spec.bias = data(bias);
    const auto blocks = static_cast<int64_t>(row_blocks(call->rows)), cols = static_cast<int64_t>(spec.cols);
    const auto partial = [&](const Tensor& of) {
      return of.defined() ? torch::empty({blocks, cols}, s.options()) : Tensor();
    };
    const Tensor d_weight = partial(weight), d_bias = partial(bias), ds = torch::empty_like(s);
    const Tensor d_branch = call->has_branch && spec.dropout > 0.0F ? torch::empty_like(s) : Tensor();
    const NormBackward args{.dy = data(dy),
                            .s = data(s),
                            .mean = data(mean),
                            .rstd = data(rstd),
                            .d_residual = data(d_residual),
                            .ds = mutable_data(ds),
                            .d_branch = mutable_data(d_branch),
                            .d_weight = mutable_data(d_weight),
                            .d_bias = mutable_data(d_bias)};
    parallel_rows(call->rows, spec.cols, [&](RowRange rows) { norm_backward(spec, args, rows); });
    const Tensor to_branch = !call->has_branch ? Tensor() : d_branch.defined() ? d_branch : ds;
    return {ds, to_branch, summed(d_weight), summed(d_bias), Tensor()};
  }

  static Tensor summed(const Tensor& partial) {
    if (!partial.defined()) return {};
    const auto rows = static_cast<size_t>(partial.size(0)), cols = static_cast<size_t>(partial.size(1));
    Tensor sums = torch::empty({partial.size(1)}, partial.options());
    column_sums(data(partial), cols, {0, rows}, cols, mutable_data(sums));
    return sums;
  }
};

NormedSum fused_add_norm(const Tensor& x, const Tensor& branch, const Dropout& how, const NormForm& form,
                         const NormWeights& weights) {
  auto call = c10::make_intrusive<AddNormCall>();
  call->spec = {.cols = static_cast<size_t>(x.size(-1)),
                .rms = form.kind == SublayerNorm::rms,
                .eps = static_cast<float>(form.eps),
                .dropout = static_cast<float>(how.rate),
                .dropout_key = how.key};
  call->spec.dropout_key.k0 += static_cast<uint32_t>(how.first_row);
  call->rows = static_cast<size_t>(x.numel() / x.size(-1));
  call->has_branch = branch.defined();
  const variable_list out =
      apply_fused<FusedAddNorm>(x, given(branch), given(weights.weight), given(weights.bias), call);
  return {.sum = branch.defined() ? out[1] : x, .y = out[0]};
}

Tensor normalise(const Tensor& s, const NormForm& form, const NormWeights& weights) {
  switch (form.kind) {
    case SublayerNorm::layer:
      return torch::layer_norm(s, weights.weight.sizes(), weights.weight, weights.bias, form.eps);
    case SublayerNorm::rms:
      return torch::rms_norm(s, weights.weight.sizes(), weights.weight, form.eps);
    case SublayerNorm::scale:
      return lp_normalize(s, 2.0, form.eps) * weights.weight;
    case SublayerNorm::dyt:
      return (s * weights.slope).tanh() * weights.weight + weights.bias;
    case SublayerNorm::none:
      break;
  }
  return s;
}

}  // namespace

NormWeights with_factor(const NormWeights& weights, double factor) {
  NormWeights out = weights;
  if (factor == 1.0) return out;
  out.weight = weights.weight * factor;
  if (weights.bias.defined()) out.bias = weights.bias * factor;
  return out;
}

NormedSum add_norm(const Tensor& x, const Tensor& branch, const Dropout& how, const NormForm& form,
                   const NormWeights& unscaled) {
  const NormWeights weights = with_factor(unscaled, form.factor);
  // The other norms are PyTorch's operators in either case.
  if (form.fused && (form.kind == SublayerNorm::layer || form.kind == SublayerNorm::rms))
    return fused_add_norm(x, branch, how, form, weights);
  const Tensor sum = branch.defined() ? x + dropout(branch, how) : x;
  return {.sum = sum, .y = normalise(widened(sum), form, weights)};
}

}  // namespace normlab
