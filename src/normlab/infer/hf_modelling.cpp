#include "normlab/infer/hf_modelling.h"

#include <sstream>
#include <string_view>

#include "normlab/infer/modelling_parts.h"

namespace normlab {
namespace {

// Without what a part of one file does not need: imports of the package, and the first line about annotations.
void append_part(std::string& out, std::string_view part) {
  std::istringstream lines{std::string(part)};
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("from normlab") && !line.starts_with("from __future__")) out += line + "\n";
  out += "\n\n";
}

}  // namespace

std::string modelling_file() {
  std::string out =
      "# Written by normlab: a language model of it for transformers (trust_remote_code=True).\n"
      "from __future__ import annotations\n\n";
  for (const std::string_view part :
       {draws_py, norms_py, attention_py, block_py, embedding_py, decoder_lm_py, transformers_model_py})
    append_part(out, part);
  return out;
}

}  // namespace normlab
