// Detokenisation: text from the tokens of Moses' tokenizer.perl, by the rules of its detokenizer.perl.
#pragma once

#include <string>
#include <string_view>

namespace normlab {

// The rules of every language, and with "en" those of English apostrophes ("don 't", "the boys ' house").
std::string detokenize(std::string_view line, std::string_view language = "en");

}  // namespace normlab
