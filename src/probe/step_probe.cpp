#include "probe/step_probe.h"

#include <cmath>

#include "base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

double norm_of(const Tensor& x) { return std::sqrt(squared_norm(x)); }

// Between two vectors; dots in double, since the cosine of a small angle is close to 1.
double angle(const Tensor& a, const Tensor& b) {
  const Tensor x = a.flatten().to(torch::kFloat64), y = b.flatten().to(torch::kFloat64);
  const auto xx = x.dot(x).item<double>(), yy = y.dot(y).item<double>(), xy = x.dot(y).item<double>();
  return std::atan2(std::sqrt(std::max(0.0, xx * yy - xy * xy)), xy);
}

}  // namespace

StepProbe::StepProbe(DecoderLm& model, const Extent& extent)
    : extent_(extent),
      sequences_(extent.batch_size * extent.batches),
      n_heads_(model.config().n_heads),
      n_kv_heads_(model.config().n_kv_heads),
      d_head_(model.config().d_head),
      n_layers_(model.config().n_layers),
      stats_(static_cast<size_t>(n_layers_ * sequences_ * n_heads_)),
      parts_(static_cast<size_t>((n_layers_ + 1) * sequences_)),
      weights_(static_cast<size_t>(n_layers_)),
      forms_(static_cast<size_t>(n_layers_)) {
  if (!extent_.everything) return;
  const torch::NoGradGuard no_grad;
  const NamedTensors parameters = model.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto words = split(parameters[i].first, '.');  // layers.3.attn.qkv.weight
    if (words.size() != 5 || words[2] != "attn" || (words[3] != "qkv" && words[3] != "out")) continue;
    LayerWeights& layer = weights_[static_cast<size_t>(parse_integer(words[1]).value())];
    const Tensor tensor = parameters[i].second.detach();
    if (words[3] == "qkv" && words[4] == "weight") {
      layer.qkv = tensor, layer.old_qkv = tensor.clone(), layer.qkv_index = i;
    } else if (words[3] == "qkv" && words[4] == "bias") {
      layer.qkv_bias = tensor, layer.old_bias = tensor.clone();
    } else if (words[3] == "out" && words[4] == "weight") {
      layer.out = tensor, layer.old_out = tensor.clone(), layer.out_index = i;
    }
  }
}

size_t StepProbe::place(int layer, const Pass& pass) const {
  const int64_t sequence = (pass.step - extent_.first_pass) * extent_.batch_size + pass.first_sequence;
  return static_cast<size_t>(layer * sequences_ + sequence);
}

void StepProbe::see(Site site, int layer, const Tensor& x, const Pass& pass) {
  if (!extent_.everything) return;
  const torch::NoGradGuard no_grad;
  Part& part = parts_[place(layer, pass)];
  const auto squared_gradient = [&x](double& to) {
    if (x.requires_grad())
      x.register_hook([&to](const Tensor& grad) { to = grad.defined() ? squared_norm(grad) : 0.0; });
  };
  switch (site) {
    case Site::stream:
      part.stream = sum_of_row_norms(x);
      part.n_tokens = x.size(0) * x.size(1);
      return;
    case Site::attn_out:
      return squared_gradient(part.d_attn_out);
    case Site::mlp_out:
      return squared_gradient(part.d_mlp_out);
    case Site::logits:
      part.log_partition = x.logsumexp(-1).sum(torch::kFloat64).item<double>();
      return;
  }
}

AttentionStats* StepProbe::attention(int layer, const Tensor& qkv_bthd, const AttentionForm& form, const Pass& pass) {
  const size_t at = place(layer, pass);
  AttentionStats* const count_here = stats_.data() + at * static_cast<size_t>(n_heads_);
  if (!extent_.everything) return count_here;
  const torch::NoGradGuard no_grad;
  Part& part = parts_[at];
  part.rows = head_sums(qkv_bthd, n_heads_ + n_kv_heads_);
  part.n_rows = qkv_bthd.size(0) * qkv_bthd.size(1);
  if (qkv_bthd.requires_grad())
    qkv_bthd.register_hook([this, &part](const Tensor& grad) {
      if (!grad.defined()) return;
      const auto squares = squared_norms(grad, {n_heads_, n_heads_ + n_kv_heads_, n_heads_ + 2 * n_kv_heads_});
      part.d_q = squares[0], part.d_k = squares[1], part.d_v = squares[2];
    });
  if (at % static_cast<size_t>(sequences_) == 0) {
    LayerForm& known = forms_[static_cast<size_t>(layer)];
    known.normalised = form.qk.norm != QkNorm::none;
    if (form.gain.defined()) known.gain = form.gain.detach().clone();  // the update is yet to come
    if (form.qk.learned_p.defined()) known.p = form.qk.learned_p.detach();
  }
  return count_here;
}

std::vector<Tensor> StepProbe::split_rows(const Tensor& qkv) const {
  return qkv.split_with_sizes({n_heads_ * d_head_, n_kv_heads_ * d_head_, n_kv_heads_ * d_head_}, 0);
}

void StepProbe::gradients(const std::vector<std::vector<Tensor>>& parts) {
  if (!extent_.everything) return;
  const torch::NoGradGuard no_grad;
  const auto sum = [&](size_t index) {
    Tensor total = parts.front()[index];
    for (size_t part = 1; part < parts.size(); ++part) total = total + parts[part][index];
    return total;
  };
  for (LayerWeights& layer : weights_) {
    layer.grads.clear();
    for (const Tensor& each : split_rows(sum(layer.qkv_index))) layer.grads.push_back(norm_of(each));
    layer.grads.push_back(norm_of(sum(layer.out_index)));
  }
}

// A layer's own values, then those of its heads.
void StepProbe::add_heads(std::vector<Reading>& to, int layer) const {
  std::vector<AttentionStats> heads(static_cast<size_t>(n_heads_));
  AttentionStats whole;
  for (int64_t sequence = 0; sequence < sequences_; ++sequence)
    for (int64_t h = 0; h < n_heads_; ++h)
      merge(heads[static_cast<size_t>(h)], stats_[static_cast<size_t>((layer * sequences_ + sequence) * n_heads_ + h)]);
  for (const AttentionStats& head : heads) merge(whole, head);
  add_attention(to, layer, -1, whole, sequences_, n_heads_);
  const auto every_head = [&](Quantity quantity, const Tensor& of_layer, const Tensor& of_heads) {
    to.push_back({quantity, layer, -1, of_layer.item<double>()});
    for (int64_t h = 0; h < n_heads_; ++h)
      to.push_back({quantity, layer, static_cast<int>(h), of_heads[h].item<double>()});
  };
  for (size_t h = 0; h < heads.size(); ++h) add_attention(to, layer, static_cast<int>(h), heads[h], sequences_);
  if (!extent_.everything) return;

  Tensor sums = torch::zeros({2, n_heads_ + n_kv_heads_}, torch::kFloat64);
  int64_t n_rows = 0;
  for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const Part& part = parts_[static_cast<size_t>(layer * sequences_ + sequence)];
    if (part.n_rows == 0) continue;  // an earlier sequence stands for its whole part
    sums = sums + torch::stack({torch::tensor(part.rows.norms, torch::kFloat64),
                                torch::tensor(part.rows.peaks, torch::kFloat64)});
    n_rows += part.n_rows;
  }
  const Tensor means = sums / static_cast<double>(n_rows);
  const int64_t group = n_heads_ / n_kv_heads_;
  const Tensor q = means.slice(1, 0, n_heads_), k = means.slice(1, n_heads_).repeat_interleave(group, 1);
  every_head(Quantity::q_norm, q[0].mean(), q[0]);
  every_head(Quantity::k_norm, k[0].mean(), k[0]);
  every_head(Quantity::q_peak, q[1].mean(), q[1]);
  every_head(Quantity::k_peak, k[1].mean(), k[1]);
  const LayerForm& form = forms_[static_cast<size_t>(layer)];
  const auto by_head = [&](const Tensor& x) {
    return x.numel() == 1 ? x.expand({n_heads_}) : x.view({n_heads_, -1}).mean(1);
  };
  if (form.gain.defined()) every_head(Quantity::gain, form.gain.mean(), by_head(form.gain));
  if (form.p.defined()) every_head(Quantity::p, form.p.mean(), by_head(form.p));
}

void StepProbe::add_weights(std::vector<Reading>& to, int layer) const {
  const LayerWeights& w = weights_[static_cast<size_t>(layer)];
  for (size_t i = 0; i < w.grads.size(); ++i)
    to.push_back({static_cast<Quantity>(static_cast<size_t>(Quantity::grad_w_q) + i), layer, -1, w.grads[i]});
  if (w.grads.empty()) return;  // a forward pass alone
  std::vector<Tensor> now = split_rows(w.qkv), before = split_rows(w.old_qkv);
  now.push_back(w.out), before.push_back(w.old_out);
  for (size_t i = 0; i < now.size(); ++i)
    to.push_back({static_cast<Quantity>(static_cast<size_t>(Quantity::update_w_q) + i), layer, -1,
                  norm_of(now[i] - before[i]) / norm_of(before[i])});
  if (forms_[static_cast<size_t>(layer)].normalised) add_angles(to, layer);
}

void StepProbe::add_angles(std::vector<Reading>& to, int layer) const {
  const LayerWeights& w = weights_[static_cast<size_t>(layer)];
  const auto with_bias = [](const Tensor& weight, const Tensor& bias) {
    return bias.defined() ? torch::cat({weight, bias.unsqueeze(1)}, 1) : weight;
  };
  const auto now = split_rows(with_bias(w.qkv, w.qkv_bias)), before = split_rows(with_bias(w.old_qkv, w.old_bias));
  for (const size_t i : {size_t{0}, size_t{1}}) {
    double sum = 0.0;
    const int64_t heads = i == 0 ? n_heads_ : n_kv_heads_;
    for (int64_t h = 0; h < heads; ++h)
      sum += angle(before[i].slice(0, h * d_head_, (h + 1) * d_head_), now[i].slice(0, h * d_head_, (h + 1) * d_head_));
    to.push_back({i == 0 ? Quantity::angle_w_q : Quantity::angle_w_k, layer, -1, sum / static_cast<double>(heads)});
  }
}

void StepProbe::add_activations(std::vector<Reading>& to, int layer) const {
  Part sum;
  for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const Part& part = parts_[static_cast<size_t>(layer * sequences_ + sequence)];
    for (double Part::*member :
         {&Part::d_q, &Part::d_k, &Part::d_v, &Part::d_attn_out, &Part::d_mlp_out, &Part::stream, &Part::log_partition})
      sum.*member += part.*member;
    sum.n_tokens += part.n_tokens;
  }
  if (layer < n_layers_ && !weights_.front().grads.empty()) {
    const std::pair<Quantity, double> squares[] = {{Quantity::grad_q, sum.d_q},
                                                   {Quantity::grad_k, sum.d_k},
                                                   {Quantity::grad_v, sum.d_v},
                                                   {Quantity::grad_attn_out, sum.d_attn_out},
                                                   {Quantity::grad_mlp_out, sum.d_mlp_out}};
    for (const auto& [quantity, square] : squares) to.push_back({quantity, layer, -1, std::sqrt(square)});
  }
  const auto tokens = static_cast<double>(sum.n_tokens);
  to.push_back({Quantity::stream_norm, layer, -1, sum.stream / tokens});
  if (layer == n_layers_) to.push_back({Quantity::log_partition, -1, -1, sum.log_partition / tokens});
}

std::vector<Reading> StepProbe::readings() const {
  const torch::NoGradGuard no_grad;
  std::vector<Reading> list;
  for (int layer = 0; layer < n_layers_; ++layer) {
    add_heads(list, layer);
    if (!extent_.everything) continue;
    add_weights(list, layer);
    add_activations(list, layer);
  }
  if (extent_.everything) add_activations(list, n_layers_);
  return list;
}

}  // namespace normlab
