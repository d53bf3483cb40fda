// The places of a model that observers look at, numbered: layers, and after the last of a stack what its norm reads.
#pragma once

#include <vector>

#include "normlab/models/decoder_lm.h"
#include "normlab/models/encoder_decoder.h"
#include "normlab/record/place.h"

namespace normlab {

class ModelPlaces {
 public:
  explicit ModelPlaces(const DecoderLm& model);
  explicit ModelPlaces(const EncoderDecoder& model);

  // Of a place; a decoder layer stands right before its cross-attention.
  size_t number(Place place) const;
  size_t count() const { return places_.size(); }
  // In the order of computation, with the place after the last layer of a stack.
  const std::vector<Place>& all() const { return places_; }
  bool has_attention(Place place) const { return place.layer < layers_[static_cast<size_t>(place.stack)]; }
  bool is_last(Place place) const { return number(place) + 1 == count(); }

 private:
  void add(Stack stack, int n_layers, bool with_cross);

  int layers_[std::size(all_stacks)] = {};
  std::vector<Place> places_;
};

}  // namespace normlab
