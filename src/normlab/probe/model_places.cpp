#include "normlab/probe/model_places.h"

#include <algorithm>

namespace normlab {

ModelPlaces::ModelPlaces(const DecoderLm& model) { add(Stack::layers, model.config().n_layers, false); }

ModelPlaces::ModelPlaces(const EncoderDecoder& model) {
  add(Stack::encoder, model.shape().encoder_layers, false);
  add(Stack::decoder, model.config().n_layers, true);
}

void ModelPlaces::add(Stack stack, int n_layers, bool with_cross) {
  layers_[static_cast<size_t>(stack)] = n_layers;
  if (with_cross) layers_[static_cast<size_t>(Stack::cross)] = n_layers;
  for (int layer = 0; layer < n_layers; ++layer) {
    places_.push_back({stack, layer});
    if (with_cross) places_.push_back({Stack::cross, layer});
  }
  places_.push_back({stack, n_layers});
}

size_t ModelPlaces::number(Place place) const {
  const auto at = std::find_if(places_.begin(), places_.end(), [&](const Place& each) {
    return each.stack == place.stack && each.layer == place.layer;
  });
  return static_cast<size_t>(at - places_.begin());
}

}  // namespace normlab
