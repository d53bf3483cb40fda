#include "normlab/probe/inspection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace normlab {
namespace {

using torch::Tensor;

constexpr double inf = std::numeric_limits<double>::infinity();

constexpr int64_t histogram_bins = 40;

// The logits [h, t, s] of a pass over one sequence, -inf where a key is not visible.
Tensor logits_of(const QkvParts& qkv, const AttentionCall& call, const AttentionWeights& weights) {
  const QkvPart &first = qkv.front(), &last = qkv.back();  // the same in self-attention
  const Tensor queries = first.x_bthd.narrow(2, 0, first.queries),
               keys = last.x_bthd.narrow(2, last.queries, last.keys);
  return attention_logits(normalise_queries(queries, call, weights, 0), normalise_keys(keys, call, weights, 0), call)[0]
      .to(torch::kCPU, torch::kFloat64);
}

// entropy_floor() of every row, 0 where it sees one key.
Tensor floors_of(const Tensor& logits, const Tensor& seen) {
  const Tensor n = seen.sum(-1).to(torch::kFloat64).clamp_min(2.0);
  const Tensor s = logits.masked_fill(~seen, 0.0);
  const Tensor centred = (s - (s.sum(-1) / n).unsqueeze(-1)).masked_fill(~seen, 0.0);
  const Tensor sigma = centred.norm(2, -1), b = (-sigma * (n / (n - 1)).sqrt()).exp(), total = 1 + (n - 1) * b;
  return (total.log() + sigma * (n * (n - 1)).sqrt() * b / total).masked_fill(seen.sum(-1) < 2, 0.0);
}

std::vector<double> list_of(const Tensor& values) {
  const Tensor x = values.to(torch::kFloat64).contiguous();
  return {x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel()};
}

// Where the model has attention, stack by stack.
std::vector<Place> attention_places(const ModelPlaces& places) {
  std::vector<Place> found;
  for (const Place& place : places.all())
    if (places.has_attention(place)) found.push_back(place);
  std::stable_sort(found.begin(), found.end(), [](Place a, Place b) { return a.stack < b.stack; });
  return found;
}

// Looks at the logits of every attention.
class LogitObserver : public Observer {
 public:
  void see(Site, Place, const Tensor&, const Pass&) override {}
  void gradients(const std::vector<std::vector<Tensor>>&) override {}
  AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                            const AttentionWeights& weights, const Pass&) override {
    look(place, logits_of(qkv, call, weights));
    return nullptr;
  }

 private:
  virtual void look(Place place, const Tensor& logits) = 0;
};

// Forwards everything to the probe, and looks at the logits besides.
class Recorder : public LogitObserver {
 public:
  template <class Model>
  Recorder(Model& model, int64_t sequences, int64_t longest)
      : probe_(model, {.batch_rows = {sequences}}), places_(attention_places(ModelPlaces(model))) {
    const auto n = static_cast<int64_t>(places_.size()), n_heads = int64_t{model.config().n_heads};
    max_logit_ = torch::full({n, longest}, -inf, torch::kFloat64);
    entropy_ = torch::zeros({n, longest}, torch::kFloat64), rows_ = entropy_.clone();
    floor_ = torch::zeros({n, n_heads}, torch::kFloat64), floor_rows_ = torch::zeros({n}, torch::kFloat64);
    low_ = torch::full({n, n_heads}, inf, torch::kFloat64), high_ = -low_;
  }

  void see(Site site, Place place, const Tensor& x, const Pass& pass) override { probe_.see(site, place, x, pass); }
  AttentionStats* attention(Place place, const QkvParts& qkv, const AttentionCall& call,
                            const AttentionWeights& weights, const Pass& pass) override {
    LogitObserver::attention(place, qkv, call, weights, pass);
    return probe_.attention(place, qkv, call, weights, pass);
  }

  void finish(Inspection& to) const {
    to.readings = probe_.readings();
    to.places = places_;
    const Tensor entropy = entropy_ / rows_, floor = floor_ / floor_rows_.clamp_min(1).unsqueeze(1);
    for (size_t i = 0; i < places_.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      to.positions.emplace_back();
      for (int64_t position = 0; position < max_logit_.size(1); ++position) {
        const double largest = max_logit_[at][position].item<double>();
        if (largest > -inf) to.positions.back().push_back({largest, entropy[at][position].item<double>()});
      }
      for (int head = 0; head < floor_.size(1); ++head) {
        const HeadPlace place{places_[i].layer, head, places_[i].stack};
        const double low = low_[at][head].item<double>(), high = high_[at][head].item<double>();
        to.floors.push_back({place, floor[at][head].item<double>()});
        to.histograms.push_back({place, low, high > low ? high : low + 1.0, {}});
      }
    }
  }

 private:
  void look(Place place, const Tensor& s) override {
    const auto at =
        std::find_if(places_.begin(), places_.end(),
                     [&](const Place& each) { return each.stack == place.stack && each.layer == place.layer; }) -
        places_.begin();
    const Tensor seen = s > -inf, n_seen = seen.sum(-1), several = (n_seen[0] >= 2).to(torch::kFloat64);
    const Tensor lse = s.logsumexp(-1, /*keepdim=*/true), surprise = (lse - s).masked_fill(~seen, 0.0);
    const Tensor entropy = ((-surprise).exp() * surprise).masked_fill(~seen, 0.0).sum(-1);
    const Tensor share = entropy / n_seen.clamp_min(2).to(torch::kFloat64).log();
    const int64_t t = s.size(1);
    Tensor largest = max_logit_[at].narrow(0, 0, t);
    largest.copy_(torch::maximum(largest, s.amax(-1).amax(0)));
    entropy_[at].narrow(0, 0, t) += share.mean(0) * several;
    rows_[at].narrow(0, 0, t) += several;
    floor_[at] += floors_of(s, seen).sum(-1);
    floor_rows_[at] += several.sum();
    low_[at] = torch::minimum(low_[at], s.masked_fill(~seen, inf).amin({1, 2}));
    high_[at] = torch::maximum(high_[at], s.amax({1, 2}));
  }

  StepProbe probe_;
  std::vector<Place> places_;
  Tensor max_logit_, entropy_, rows_;  // [places, longest]
  Tensor floor_, low_, high_;          // [places, n_heads]
  Tensor floor_rows_;                  // [places]
};

// A second pass, which knows the range of each head.
class HistogramCounter : public LogitObserver {
 public:
  explicit HistogramCounter(std::vector<LogitHistogram>& histograms) : histograms_(histograms) {
    for (LogitHistogram& each : histograms_) each.counts.assign(histogram_bins, 0.0);
  }

 private:
  void look(Place place, const Tensor& s) override {
    for (LogitHistogram& each : histograms_) {
      if (each.place.stack != place.stack || each.place.layer != place.layer) continue;
      const Tensor of_head = s[each.place.head];
      const Tensor visible = of_head.masked_select(of_head > -inf).clamp(each.low, each.high);
      const std::vector<double> counts = list_of(torch::histc(visible, histogram_bins, each.low, each.high));
      for (size_t i = 0; i < counts.size(); ++i) each.counts[i] += counts[i];
    }
  }

  std::vector<LogitHistogram>& histograms_;
};

class MapKeeper : public LogitObserver {
 public:
  std::vector<AttentionMap> maps;

 private:
  void look(Place place, const Tensor& s) override {
    const auto rows_of = [](const Tensor& of_head) {
      std::vector<std::vector<double>> rows;
      for (int64_t i = 0; i < of_head.size(0); ++i) rows.push_back(list_of(of_head[i]));
      return rows;
    };
    const Tensor hidden = s == -inf, softmax = s.softmax(-1).masked_fill(hidden, std::nan(""));
    const Tensor logits = s.masked_fill(hidden, std::nan(""));
    for (int head = 0; head < s.size(0); ++head)
      maps.push_back({{place.layer, head, place.stack}, rows_of(softmax[head]), rows_of(logits[head])});
  }
};

// `run`: a pass over every sequence with the given observer.
template <class Model>
void inspect_passes(Inspection& found, Model& model, Recorder& recorder, const std::function<void(Observer&)>& run) {
  run(recorder);  // weights are not packed: the copies would be larger than the model
  recorder.finish(found);
  HistogramCounter counter(found.histograms);
  run(counter);
  found.spectra = spectra_of(model, found.places);
}

}  // namespace

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
  inspect_passes(found, model, recorder, [&](Observer& observer) {
    found.loss = 0.0;
    for (int64_t i = 0; i < windows; ++i) {  // one at a time: the logits of a window are large
      const Tensor loss = model.loss(inputs.slice(0, i, i + 1), targets.slice(0, i, i + 1),
                                     {.first_sequence = i, .observer = &observer});
      found.loss += loss.item<double>() / static_cast<double>(windows);
    }
  });
  return found;
}

Inspection inspect(EncoderDecoder& model, const std::vector<TranslationBatch>& pairs) {
  const torch::NoGradGuard no_grad;
  int64_t longest = 0, words = 0;
  for (const TranslationBatch& pair : pairs) {
    longest = std::max({longest, pair.source.tokens_bs.size(1), pair.inputs_bt.size(1)});
    words += pair.words();
  }
  Recorder recorder(model, static_cast<int64_t>(pairs.size()), longest);
  Inspection found;
  inspect_passes(found, model, recorder, [&](Observer& observer) {
    found.loss = 0.0;
    for (size_t i = 0; i < pairs.size(); ++i)
      found.loss +=
          model.loss_sum(pairs[i], {.first_sequence = static_cast<int64_t>(i), .observer = &observer}).item<double>() /
          static_cast<double>(words);
  });
  return found;
}

std::vector<AttentionMap> attention_maps(const DecoderLm& model, const Tensor& inputs) {
  const torch::NoGradGuard no_grad;
  MapKeeper keeper;
  model.logits(inputs, {.observer = &keeper});
  return keeper.maps;
}

std::vector<AttentionMap> attention_maps(const EncoderDecoder& model, const TranslationBatch& pair) {
  const torch::NoGradGuard no_grad;
  MapKeeper keeper;
  model.logits(pair, {.observer = &keeper});
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
    if (each &&
        std::find(places.begin(), places.end(), HeadPlace{each->layer, each->head, each->stack}) == places.end())
      places.push_back({each->layer, each->head, each->stack});
  return places;
}

}  // namespace normlab
