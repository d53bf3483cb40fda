// Spectra of W_q^T W_k: along how many directions a head compares tokens.
#pragma once

#include "normlab/models/decoder_lm.h"
#include "normlab/models/encoder_decoder.h"
#include "normlab/record/place.h"

namespace normlab {

struct HeadPlace {
  int layer = 0, head = 0;
  Stack stack = Stack::layers;
  bool operator==(const HeadPlace&) const = default;
};

// Singular values of W_q^T W_k of one head, falling: the energy of few of them is what attention can tell apart.
struct Spectrum {
  HeadPlace place;
  std::vector<double> values;
  double share(size_t top) const;  // of the sum of squares
};

// Of every head at these places.
std::vector<Spectrum> spectra_of(DecoderLm& model, const std::vector<Place>& places);
std::vector<Spectrum> spectra_of(EncoderDecoder& model, const std::vector<Place>& places);

}  // namespace normlab
