// BLEU of translated lines, as sacreBLEU computes it, for the training's own evaluation.
#pragma once

#include <string>
#include <vector>

#include "normlab/config/config.h"

namespace normlab {

double bleu_of_text(const std::vector<std::string>& output, const std::vector<std::string>& reference, BleuWords words);

}  // namespace normlab
