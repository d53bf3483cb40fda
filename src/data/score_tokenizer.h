// Tokenisers of translation scores: what sacreBLEU 2.6.0 and Moses' multi-bleu.perl count as words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab {

using Words = std::vector<std::string>;

Words split_words(std::string_view line);       // "none": at white space of any script
Words split_characters(std::string_view line);  // "char": every character but white space
Words split_13a(std::string_view line);   // "13a": WMT's mteval-v13a; punctuation and symbols of ASCII stand alone
Words split_intl(std::string_view line);  // "intl": mteval-v14; punctuation and symbols of all scripts
Words split_ascii_spaces(std::string_view line);  // multi-bleu.perl: bytes between white space of ASCII
Words split_lower_words(std::string_view line);   // TER: words in small letters
Words split_chrf_words(std::string_view line);    // chrF++: one mark of ASCII punctuation stands apart from a word

// The tokenisers a user chooses for BLEU, by sacreBLEU's names.
struct ScoreTokenizer {
  const char* name;
  Words (*split)(std::string_view line);
};
inline constexpr ScoreTokenizer score_tokenizers[] = {
    {"13a", split_13a}, {"intl", split_intl}, {"char", split_characters}, {"none", split_words}};

const ScoreTokenizer& find_score_tokenizer(std::string_view name);  // UsageError for an unknown one

}  // namespace normlab
