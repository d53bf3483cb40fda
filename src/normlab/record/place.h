// Where in a model something stands: in the layers of a language model, or in the encoder, the decoder or the
// cross-attention of a translator.
#pragma once

#include <string>

namespace normlab {

enum class Stack { layers, encoder, decoder, cross };
constexpr Stack all_stacks[] = {Stack::layers, Stack::encoder, Stack::decoder, Stack::cross};

struct Place {
  Stack stack = Stack::layers;
  int layer = 0;  // of cross-attention: that of the decoder
};

const char* name_of(Stack stack);   // "layer", "encoder", "decoder", "cross"
std::string key_of(Place place);    // "layer03", "encoder03", "decoder03", "cross03"
std::string describe(Place place);  // "layer 3", "encoder layer 3", "decoder layer 3", "cross-attention layer 3"

}  // namespace normlab
