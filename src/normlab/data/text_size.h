// How much text the targets of some windows are; turns their mean loss in nats per token into bits per byte and per
// character. A byte token is 1/k of a character of k bytes, so that a window may begin or end within one.
#pragma once

#include <cstdint>
#include <span>

#include "normlab/data/batch.h"
#include "normlab/data/tokenizer.h"
#include "normlab/data/tokens.h"

namespace normlab {

struct TextSize {
  int64_t tokens = 0, bytes = 0;  // bytes 0: of token ids without their text
  double characters = 0;          // code points; each ill-formed sequence is one

  double bits_per_byte(double loss) const;
  double bits_per_character(double loss) const;
};
TextSize size_of_targets(const Tokenizer& tokenizer, const Tokens& tokens, std::span<const EvalWindow> windows);

}  // namespace normlab
