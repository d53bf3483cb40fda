// Trained translators on their development text: `normlab eval`, and what `normlab inspect` reads.
#pragma once

#include <string>

#include "normlab/base/error.h"
#include "normlab/data/translation_data.h"
#include "normlab/train/checkpoint.h"

namespace normlab {

bool is_translator(const std::string& model);  // a run or checkpoint

// Loss and BLEU of at most so many pairs, 0 for all; `data` is another folder of aligned files, or empty.
struct TranslatorEval {
  std::string model, data;
  int pairs = 0;
  bool json = false, allow_nonfinite = false;
  std::string device = "auto";
};
Exit evaluate_translator(const TranslatorEval& options);

// The development text, or that of another folder, at most so many pairs of it; 0 for all.
struct DevelopmentText {
  TranslationData data;
  ParallelText pairs;
};
DevelopmentText development_text(const LoadedTranslator& loaded, const std::string& folder, int most);

}  // namespace normlab
