// The mean of a run's last checkpoints, which often translates better than any of them.
#pragma once

#include <filesystem>

#include "normlab/models/encoder_decoder.h"

namespace normlab {

// Fills the model with the mean of the weights of the last `count` checkpoints of the run; UsageError when it has not
// kept as many.
void load_average(const std::filesystem::path& run, size_t count, EncoderDecoder& model);

}  // namespace normlab
