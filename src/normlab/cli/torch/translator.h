// Trained translators on their development text: what `normlab eval` and `normlab inspect` say of them.
#pragma once

#include <string>

#include "normlab/base/error.h"

namespace normlab {

bool is_translator(const std::string& model);  // a run or checkpoint

// Loss and BLEU of at most so many pairs, 0 for all; `data` is another folder of aligned files, or empty.
struct TranslatorEval {
  std::string model, data;
  int pairs = 0;
  bool json = false;
};
Exit evaluate_translator(const TranslatorEval& options);

// Attention of the encoder, the decoder and between them, over some pairs.
struct TranslatorInspection {
  std::string model, out;  // `out`: file of the readings; empty: inspect.json in the model's folder
  int pairs = 8;
  bool json = false;
};
Exit inspect_translator(const TranslatorInspection& options);

}  // namespace normlab
