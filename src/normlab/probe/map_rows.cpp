#include "normlab/probe/map_rows.h"

#include <cmath>

#include "normlab/base/text.h"
#include "normlab/probe/row_norms.h"

namespace normlab {
namespace {

using torch::Tensor;

double norm_of(const Tensor& x) { return std::sqrt(squared_norm(x)); }

// Between two vectors; dots in double, since the cosine of a small angle is close to 1.
double angle_between(const Tensor& a, const Tensor& b) {
  const Tensor x = a.flatten().to(torch::kFloat64), y = b.flatten().to(torch::kFloat64);
  const auto xx = x.dot(x).item<double>(), yy = y.dot(y).item<double>(), xy = x.dot(y).item<double>();
  return std::atan2(std::sqrt(std::max(0.0, xx * yy - xy * xy)), xy);
}

Tensor with_bias(const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? torch::cat({weight, bias.unsqueeze(1)}, 1) : weight;
}

// "layers.3.attn", "encoder.3.attn", "decoder.3.attn" and "decoder.3.cross", as the models name them.
std::string attention_name(Place place) {
  const bool cross = place.stack == Stack::cross;
  const std::string stack = cross ? "decoder" : place.stack == Stack::layers ? "layers" : name_of(place.stack);
  return concat(stack, ".", place.layer, cross ? ".cross" : ".attn");
}

}  // namespace

void MapRows::take_gradient(const std::vector<std::vector<Tensor>>& parts) {
  Tensor total = parts.front()[index].narrow(0, first, rows);
  for (size_t part = 1; part < parts.size(); ++part) total = total + parts[part][index].narrow(0, first, rows);
  gradient = norm_of(total);
}

double MapRows::update() const { return norm_of(weight - old_weight) / norm_of(old_weight); }

double MapRows::angle(int64_t d_head) const {
  const Tensor now = with_bias(weight, bias).cpu(), before = with_bias(old_weight, old_bias).cpu();
  double sum = 0.0;
  for (int64_t row = 0; row < rows; row += d_head)
    sum += angle_between(before.narrow(0, row, d_head), now.narrow(0, row, d_head));
  return sum / static_cast<double>(rows / d_head);
}

MapsOfAttention maps_of_attention(Place place, const ModelConfig& config, const NamedTensors& parameters,
                                  const std::map<std::string, size_t>& indices) {
  const std::string attention = attention_name(place);
  const auto rows_of = [&](const char* product, int64_t first, int64_t rows) {
    MapRows map;
    map.index = indices.at(concat(attention, product, ".weight"));
    map.first = first, map.rows = rows;
    const auto view = [&](size_t index) { return parameters[index].second.detach().narrow(0, first, rows); };
    map.weight = view(map.index), map.old_weight = map.weight.clone();
    if (const auto bias = indices.find(concat(attention, product, ".bias")); bias != indices.end())
      map.bias = view(bias->second), map.old_bias = map.bias.clone();
    return map;
  };
  const int64_t q = config.n_heads * config.d_head, kv = config.n_kv_heads * config.d_head;
  const MapRows out = rows_of(".out", 0, config.d_model);
  if (place.stack == Stack::cross) return {rows_of(".q", 0, q), rows_of(".kv", 0, kv), rows_of(".kv", kv, kv), out};
  return {rows_of(".qkv", 0, q), rows_of(".qkv", q, kv), rows_of(".qkv", q + kv, kv), out};
}

}  // namespace normlab
