// Spectra of W_q^T W_k: along how many directions a head compares tokens.
#include "normlab/probe/spectrum.h"

#include <map>

#include "normlab/base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

// Singular values of W_q^T W_k; the rows of both are heads of d channels.
void add_spectra(std::vector<Spectrum>& to, Place place, const Tensor& queries, const Tensor& keys, int64_t d) {
  const int64_t n_heads = queries.size(0) / d, group = n_heads / (keys.size(0) / d);
  for (int64_t head = 0; head < n_heads; ++head) {
    const Tensor w_q = queries.narrow(0, head * d, d), w_k = keys.narrow(0, head / group * d, d);
    const Tensor values = torch::linalg_svdvals(w_q.t().mm(w_k)).slice(0, 0, d).contiguous();  // of rank d at most
    to.push_back({{place.layer, static_cast<int>(head), place.stack},
                  {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()}});
  }
}

// From "layers.0.attn.qkv.weight", "decoder.0.cross.q.weight" and "decoder.0.cross.kv.weight".
template <class Model>
std::vector<Spectrum> all_spectra(Model& model, const std::vector<Place>& places) {
  const ModelConfig& config = model.config();
  const int64_t d = config.d_head, query_rows = config.n_heads * d, key_rows = config.n_kv_heads * d;
  std::map<std::string, Tensor> weights;
  for (const auto& [name, tensor] : model.parameters())
    if (name.ends_with(".weight")) weights[name] = tensor;
  const auto weight = [&](const std::string& name) {
    return weights.at(name).detach().to(torch::kCPU, torch::kFloat64);
  };
  std::vector<Spectrum> list;
  for (const Place& place : places) {
    if (place.stack == Stack::cross) {
      const std::string name = concat("decoder.", place.layer, ".cross.");
      add_spectra(list, place, weight(name + "q.weight"), weight(name + "kv.weight").narrow(0, 0, key_rows), d);
    } else {
      const std::string stack = place.stack == Stack::layers ? "layers" : name_of(place.stack);
      const Tensor qkv = weight(concat(stack, ".", place.layer, ".attn.qkv.weight"));
      add_spectra(list, place, qkv.narrow(0, 0, query_rows), qkv.narrow(0, query_rows, key_rows), d);
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

std::vector<Spectrum> spectra_of(DecoderLm& model, const std::vector<Place>& places) {
  return all_spectra(model, places);
}
std::vector<Spectrum> spectra_of(EncoderDecoder& model, const std::vector<Place>& places) {
  return all_spectra(model, places);
}

}  // namespace normlab
