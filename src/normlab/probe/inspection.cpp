#include "normlab/probe/inspection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "normlab/base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr double inf = std::numeric_limits<double>::infinity();

// The logits [h, t, s] of a pass over one window, -inf where a key is not visible.
Tensor logits_of(const QkvPart& qkv, const AttentionCall& call, const AttentionWeights& weights) {
  const auto parts = qkv.x_bthd.split_with_sizes({qkv.queries, qkv.keys, qkv.values}, 2);
  return attention_logits(normalise_queries(parts[0], call, weights, 0), normalise_keys(parts[1], call, weights, 0),
                          call)[0]
      .to(torch::kFloat64);
}

// entropy_floor() of every row, 0 where it sees one key.
Tensor floors_of(const Tensor& logits, const Tensor& seen) {
  const Tensor n = seen.sum(-1).to(torch::kFloat64).clamp_min(2.0);
  const Tensor s = logits.masked_fill(~seen, 0.0);
  const Tensor centred = (s - (s.sum(-1) / n).unsqueeze(-1)).masked_fill(~seen, 0.0);
  const Tensor sigma = centred.norm(2, -1), b = (-sigma * (n / (n - 1)).sqrt()).exp(), total = 1 + (n - 1) * b;
  return (total.log() + sigma * (n * (n - 1)).sqrt() * b / total).masked_fill(seen.sum(-1) < 2, 0.0);
}

// Forwards everything to the probe, and looks at the logits besides.
class Recorder : public Observer {
 public:
  Recorder(DecoderLm& model, int64_t windows, int64_t t)
      : probe_(model, {.batch_rows = {windows}}),
        n_heads_(model.config().n_heads),
        max_logit_(torch::full({model.config().n_layers, t}, -inf, torch::kFloat64)),
        entropy_(torch::zeros({model.config().n_layers, t}, torch::kFloat64)),
        floor_(torch::zeros({model.config().n_layers, n_heads_}, torch::kFloat64)) {}

  void see(Site site, Place place, const Tensor& x, const Pass& pass) override { probe_.see(site, place, x, pass); }
  void gradients(const std::vector<std::vector<Tensor>>&) override {}
  AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                            const AttentionWeights& weights, const Pass& pass) override {
    const int layer = place.layer;
    const Tensor s = logits_of(qkv.front(), call, weights), seen = s > -inf,
                 log_n = seen.sum(-1).to(torch::kFloat64).log();
    const Tensor lse = s.logsumexp(-1, /*keepdim=*/true), surprise = (lse - s).masked_fill(~seen, 0.0);
    const Tensor entropy = ((-surprise).exp() * surprise).masked_fill(~seen, 0.0).sum(-1);
    max_logit_[layer] = torch::maximum(max_logit_[layer], s.amax(-1).amax(0));
    entropy_[layer] += (entropy / log_n).mean(0);  // 0 / 0 where there is one key
    floor_[layer] += floors_of(s, seen).sum(-1) / (seen[0].sum(-1) >= 2).sum().clamp_min(1);
    return probe_.attention(place, qkv, call, weights, pass);
  }

  void finish(Inspection& to, int64_t windows) const {
    to.readings = probe_.readings();
    const Tensor entropy = entropy_ / static_cast<double>(windows), floor = floor_ / static_cast<double>(windows);
    for (int layer = 0; layer < max_logit_.size(0); ++layer) {
      to.positions.emplace_back();
      for (int64_t i = 0; i < max_logit_.size(1); ++i)
        to.positions.back().push_back({max_logit_[layer][i].item<double>(), entropy[layer][i].item<double>()});
      for (int head = 0; head < n_heads_; ++head)
        to.floors.push_back({{layer, head}, floor[layer][head].item<double>()});
    }
  }

 private:
  StepProbe probe_;
  int64_t n_heads_;
  Tensor max_logit_, entropy_, floor_;  // [n_layers, t] twice, [n_layers, n_heads]
};

class MapKeeper : public Observer {
 public:
  explicit MapKeeper(const std::vector<HeadPlace>& wanted) : maps(wanted.size()) {
    for (size_t i = 0; i < wanted.size(); ++i) maps[i].place = wanted[i];
  }
  void see(Site, Place, const Tensor&, const Pass&) override {}
  void gradients(const std::vector<std::vector<Tensor>>&) override {}
  AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                            const AttentionWeights& weights, const Pass&) override {
    const Tensor s = logits_of(qkv.front(), call, weights);
    const Tensor softmax = s.softmax(-1).masked_fill(s == -inf, std::nan(""));
    for (AttentionMap& map : maps) {
      if (map.place.layer != place.layer) continue;
      const Tensor of_head = softmax[map.place.head].contiguous();
      const double* at = of_head.const_data_ptr<double>();
      for (int64_t i = 0; i < of_head.size(0); ++i, at += of_head.size(1))
        map.weights.emplace_back(at, at + of_head.size(1));
    }
    return nullptr;
  }

  std::vector<AttentionMap> maps;
};

std::vector<Spectrum> spectra_of(DecoderLm& model) {
  const ModelConfig& config = model.config();
  std::vector<Spectrum> list;
  for (const auto& [name, tensor] : model.parameters()) {
    if (!name.ends_with(".attn.qkv.weight")) continue;
    const Tensor weight = tensor.detach().to(torch::kFloat64);
    const int layer = static_cast<int>(parse_integer(split(name, '.')[1]).value());
    const int64_t d = config.d_head, group = config.n_heads / config.n_kv_heads;
    for (int head = 0; head < config.n_heads; ++head) {
      const int64_t key = config.n_heads + head / group;
      const Tensor w_q = weight.slice(0, head * d, (head + 1) * d), w_k = weight.slice(0, key * d, (key + 1) * d);
      const Tensor values = torch::linalg_svdvals(w_q.t().mm(w_k)).slice(0, 0, d).contiguous();  // of rank d at most
      list.push_back(
          {{layer, head}, {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()}});
    }
  }
  return list;
}

}  // namespace

double Spectrum::share(size_t top) const {
  double sum = 0.0, all = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    all += values[i] * values[i];
    if (i < top) sum += values[i] * values[i];
  }
  return all > 0.0 ? sum / all : 0.0;
}

double entropy_floor(double sigma, int64_t n) {
  const auto count = static_cast<double>(n);
  const double b = std::exp(-sigma * std::sqrt(count / (count - 1))), total = 1 + (count - 1) * b;
  return std::log(total) + sigma * std::sqrt(count * (count - 1)) * b / total;
}

Inspection inspect(DecoderLm& model, const Tensor& inputs, const Tensor& targets) {
  const torch::NoGradGuard no_grad;
  const int64_t windows = inputs.size(0);
  Recorder recorder(model, windows, inputs.size(1));
  Inspection found;
  model.pack_weights();
  for (int64_t i = 0; i < windows; ++i) {  // one at a time: the logits of a window are large
    const Tensor loss =
        model.loss(inputs.slice(0, i, i + 1), targets.slice(0, i, i + 1), {.first_sequence = i, .observer = &recorder});
    found.loss += loss.item<double>() / static_cast<double>(windows);
  }
  recorder.finish(found, windows);
  found.spectra = spectra_of(model);
  return found;
}

std::vector<AttentionMap> attention_maps(const DecoderLm& model, const Tensor& inputs,
                                         const std::vector<HeadPlace>& heads) {
  const torch::NoGradGuard no_grad;
  MapKeeper keeper(heads);
  model.pack_weights();
  model.logits(inputs, {.observer = &keeper});
  return keeper.maps;
}

std::vector<HeadPlace> notable_heads(const std::vector<Reading>& readings) {
  const auto best = [&](Quantity quantity, double sign) {
    const Reading* found = nullptr;
    for (const Reading& each : readings)
      if (each.quantity == quantity && each.head >= 0 && (!found || sign * each.value > sign * found->value))
        found = &each;
    return found;
  };
  std::vector<HeadPlace> places;
  for (const Reading* each :
       {best(Quantity::relative_entropy, -1.0), best(Quantity::relative_entropy, 1.0), best(Quantity::max_logit, 1.0)})
    if (each && std::find(places.begin(), places.end(), HeadPlace{each->layer, each->head}) == places.end())
      places.push_back({each->layer, each->head});
  return places;
}

}  // namespace normlab
