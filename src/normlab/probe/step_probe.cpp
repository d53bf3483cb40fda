#include "normlab/probe/step_probe.h"

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "normlab/base/text.h"
#include "normlab/probe/attention_readings.h"

namespace normlab {
namespace {

using torch::Tensor;

Quantity of_map(Quantity first, size_t map) { return static_cast<Quantity>(static_cast<size_t>(first) + map); }

}  // namespace

StepProbe::StepProbe(DecoderLm& model, const Extent& extent)
    : StepProbe(ModelPlaces(model), model.config(), extent, model.parameters()) {}

StepProbe::StepProbe(EncoderDecoder& model, const Extent& extent)
    : StepProbe(ModelPlaces(model), model.config(), extent, model.parameters()) {}

StepProbe::StepProbe(const ModelPlaces& places, const ModelConfig& config, const Extent& extent,
                     NamedTensors parameters)
    : extent_(extent),
      places_(places),
      first_rows_(extent.batch_rows.size()),
      sequences_(std::accumulate(extent.batch_rows.begin(), extent.batch_rows.end(), int64_t{0})),
      n_heads_(config.n_heads),
      n_kv_heads_(config.n_kv_heads),
      d_head_(config.d_head),
      stats_(places.count() * static_cast<size_t>(sequences_ * n_heads_)),
      parts_(places.count() * static_cast<size_t>(sequences_)),
      maps_(places.count()),
      forms_(places.count()) {
  std::exclusive_scan(extent.batch_rows.begin(), extent.batch_rows.end(), first_rows_.begin(), int64_t{0});
  if (!extent_.everything) return;
  std::map<std::string, size_t> indices;
  for (size_t i = 0; i < parameters.size(); ++i) indices[parameters[i].first] = i;
  for (const Place& place : places_.all())
    if (places_.has_attention(place))
      maps_[places_.number(place)] = maps_of_attention(place, config, parameters, indices);
}

size_t StepProbe::slot(Place place, const Pass& pass) const {
  const int64_t sequence = first_rows_[static_cast<size_t>(pass.step - extent_.first_pass)] + pass.first_sequence;
  return places_.number(place) * static_cast<size_t>(sequences_) + static_cast<size_t>(sequence);
}

void StepProbe::see(Site site, Place place, const Tensor& x, const Pass& pass) {
  if (!extent_.everything) return;
  const torch::NoGradGuard no_grad;
  Part& part = parts_[slot(place, pass)];
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

AttentionStats* StepProbe::attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                                     const AttentionWeights& weights, const Pass& pass) {
  const size_t at = slot(place, pass);
  AttentionStats* const count_here = stats_.data() + at * static_cast<size_t>(n_heads_);
  if (!extent_.everything) return count_here;
  const torch::NoGradGuard no_grad;
  Part& part = parts_[at];
  for (const QkvPart& each : qkv) {
    const Tensor& x = each.x_bthd;
    const int64_t rows = x.size(0) * x.size(1);
    const HeadSums sums = head_sums(x, each.queries + each.keys);
    if (each.queries > 0) part.queries = sums.slice(0, each.queries), part.n_queries = rows;
    if (each.keys > 0) part.keys = sums.slice(each.queries, each.keys), part.n_keys = rows;
    if (x.requires_grad())
      x.register_hook([&part, q = each.queries, k = each.keys, v = each.values](const Tensor& grad) {
        if (!grad.defined()) return;
        const auto squares = squared_norms(grad, {q, q + k, q + k + v});
        part.d_q += squares[0], part.d_k += squares[1], part.d_v += squares[2];
      });
  }
  if (at % static_cast<size_t>(sequences_) == 0) {
    LayerForm& known = forms_[places_.number(place)];
    known.normalised = call.form.qk != QkNorm::none;
    if (weights.gain.defined()) known.gain = weights.gain.detach().clone().cpu();  // the update is yet to come
    if (weights.p.defined()) known.p = weights.p.detach().cpu();
  }
  return count_here;
}

void StepProbe::gradients(const std::vector<std::vector<Tensor>>& parts) {
  if (!extent_.everything) return;
  const torch::NoGradGuard no_grad;
  differentiated_ = true;
  for (const Place& place : places_.all()) {
    if (!places_.has_attention(place)) continue;
    for (MapRows& map : maps_[places_.number(place)]) map.take_gradient(parts);
  }
}

std::string StepProbe::seen() const {
  std::string bytes;
  const auto put = [&](const void* from, size_t size) { bytes.append(static_cast<const char*>(from), size); };
  put(stats_.data(), stats_.size() * sizeof(AttentionStats));
  for (Part part : parts_)
    part.visit_values([&]<class T>(const T& value) {
      if constexpr (std::is_arithmetic_v<T>) {
        put(&value, sizeof value);
      } else {
        const size_t count = value.size();
        put(&count, sizeof count);
        put(value.data(), count * sizeof(double));
      }
    });
  return bytes;
}

// A part of the batch is another process's or this one's: one of the two terms is empty.
void StepProbe::add_seen(const std::string& bytes) {
  const char* from = bytes.data();
  const auto get = [&](void* to, size_t size) { std::memcpy(to, std::exchange(from, from + size), size); };
  for (AttentionStats& stats : stats_) {
    AttentionStats theirs;
    get(&theirs, sizeof theirs);
    merge(stats, theirs);
  }
  for (Part& part : parts_)
    part.visit_values([&]<class T>(T& value) {
      if constexpr (std::is_arithmetic_v<T>) {
        T theirs;
        get(&theirs, sizeof theirs);
        value += theirs;
      } else {
        size_t count = 0;
        get(&count, sizeof count);
        T theirs(count);
        get(theirs.data(), count * sizeof(double));
        if (count > 0) value = std::move(theirs);
      }
    });
}

// What attention counted: a layer's own values, then those of its heads.
void StepProbe::add_counts(std::vector<Reading>& to, Place place) const {
  std::vector<AttentionStats> heads(static_cast<size_t>(n_heads_));
  AttentionStats whole;
  const AttentionStats* counted = stats_.data() + places_.number(place) * static_cast<size_t>(sequences_ * n_heads_);
  for (int64_t sequence = 0; sequence < sequences_; ++sequence)
    for (AttentionStats& head : heads) merge(head, *counted++);
  for (const AttentionStats& head : heads) merge(whole, head);
  add_attention(to, place, -1, whole, sequences_, n_heads_);
  for (size_t h = 0; h < heads.size(); ++h) add_attention(to, place, static_cast<int>(h), heads[h], sequences_);
}

void StepProbe::add_heads(std::vector<Reading>& to, Place place) const {
  HeadSums queries, keys;
  int64_t n_queries = 0, n_keys = 0;
  for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const Part& each = part(place, sequence);
    if (each.n_queries == 0) continue;  // an earlier sequence stands for its whole part
    queries += each.queries, keys += each.keys;
    n_queries += each.n_queries, n_keys += each.n_keys;
  }
  const auto every_head = [&](Quantity quantity, const Tensor& of_layer, const Tensor& of_heads) {
    to.push_back({quantity, place.layer, -1, of_layer.item<double>(), place.stack});
    for (int64_t h = 0; h < n_heads_; ++h)
      to.push_back({quantity, place.layer, static_cast<int>(h), of_heads[h].item<double>(), place.stack});
  };
  const auto mean = [](const std::vector<double>& sums, int64_t rows) {
    return torch::tensor(sums, torch::kFloat64) / static_cast<double>(rows);
  };
  const auto of_keys = [&](const std::vector<double>& sums) {
    return mean(sums, n_keys).repeat_interleave(n_heads_ / n_kv_heads_);
  };
  const std::pair<Quantity, Tensor> means[] = {{Quantity::q_norm, mean(queries.norms, n_queries)},
                                               {Quantity::k_norm, of_keys(keys.norms)},
                                               {Quantity::q_peak, mean(queries.peaks, n_queries)},
                                               {Quantity::k_peak, of_keys(keys.peaks)}};
  for (const auto& [quantity, values] : means) every_head(quantity, values.mean(), values);
  const LayerForm& form = forms_[places_.number(place)];
  const auto by_head = [&](const Tensor& x) {
    return x.numel() == 1 ? x.expand({n_heads_}) : x.view({n_heads_, -1}).mean(1);
  };
  if (form.gain.defined()) every_head(Quantity::gain, form.gain.mean(), by_head(form.gain));
  if (form.p.defined()) every_head(Quantity::p, form.p.mean(), by_head(form.p));
}

void StepProbe::add_weights(std::vector<Reading>& to, Place place) const {
  const auto& maps = maps_[places_.number(place)];
  const auto add = [&](Quantity quantity, double value) {
    to.push_back({quantity, place.layer, -1, value, place.stack});
  };
  for (size_t i = 0; i < maps.size(); ++i) add(of_map(Quantity::grad_w_q, i), maps[i].gradient);
  for (size_t i = 0; i < maps.size(); ++i) add(of_map(Quantity::update_w_q, i), maps[i].update());
  if (!forms_[places_.number(place)].normalised) return;
  add(Quantity::angle_w_q, maps[0].angle(d_head_));
  add(Quantity::angle_w_k, maps[1].angle(d_head_));
}

void StepProbe::add_activations(std::vector<Reading>& to, Place place) const {
  Part sum;
  for (int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const Part& each = part(place, sequence);
    for (double Part::*member :
         {&Part::d_q, &Part::d_k, &Part::d_v, &Part::d_attn_out, &Part::d_mlp_out, &Part::stream, &Part::log_partition})
      sum.*member += each.*member;
    sum.n_tokens += each.n_tokens;
  }
  const auto add = [&](Quantity quantity, double value) {
    to.push_back({quantity, place.layer, -1, value, place.stack});
  };
  const bool cross = place.stack == Stack::cross;  // a part of its decoder layer, which has the MLP and the stream
  if (places_.has_attention(place) && differentiated_) {
    add(Quantity::grad_q, std::sqrt(sum.d_q));
    add(Quantity::grad_k, std::sqrt(sum.d_k));
    add(Quantity::grad_v, std::sqrt(sum.d_v));
    add(Quantity::grad_attn_out, std::sqrt(sum.d_attn_out));
    if (!cross) add(Quantity::grad_mlp_out, std::sqrt(sum.d_mlp_out));
  }
  if (cross) return;
  const auto tokens = static_cast<double>(sum.n_tokens);
  add(Quantity::stream_norm, sum.stream / tokens);
  if (places_.is_last(place)) to.push_back({Quantity::log_partition, -1, -1, sum.log_partition / tokens});
}

std::vector<Reading> StepProbe::readings() const {
  const torch::NoGradGuard no_grad;
  std::vector<Reading> list;
  for (const Place& place : places_.all()) {
    const bool attends = places_.has_attention(place);
    if (attends) add_counts(list, place);
    if (!extent_.everything) continue;
    if (attends) add_heads(list, place);
    if (attends && differentiated_) add_weights(list, place);
    add_activations(list, place);
  }
  return list;
}

}  // namespace normlab
