// Modules of the Python package as text, embedded by CMake.
#pragma once

#include <string_view>

namespace normlab {

extern const std::string_view draws_py, norms_py, attention_py, block_py, embedding_py, decoder_lm_py,
    transformers_model_py;

}  // namespace normlab
