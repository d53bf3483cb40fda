// normlab bpe encode and bpe decode: text to the token ids of a tokenizer.json and back.
#pragma once

#include "normlab/cli/verbs.h"

namespace normlab {

void add_bpe_encode(CLI::App& verb, Exit& exit);
void add_bpe_decode(CLI::App& verb, Exit& exit);

}  // namespace normlab
