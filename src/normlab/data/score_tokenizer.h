// Tokenisers of translation scores: what sacreBLEU 2.6.0 and Moses' multi-bleu.perl count as words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/sentencepiece.h"

namespace normlab {

using Words = std::vector<std::string>;

Words split_words(std::string_view line);       // "none": at white space of any script
Words split_characters(std::string_view line);  // "char": every character but white space
Words split_13a(std::string_view line);   // "13a": WMT's mteval-v13a; punctuation and symbols of ASCII stand alone
Words split_intl(std::string_view line);  // "intl": mteval-v14; punctuation and symbols of all scripts
Words split_zh(std::string_view line);    // "zh": Chinese characters stand alone, the rest as in 13a
Words split_ascii_spaces(std::string_view line);    // multi-bleu.perl: bytes between white space of ASCII
Words split_chrf_words(std::string_view line);      // chrF++: one mark of ASCII punctuation stands apart from a word
Words split_all_characters(std::string_view line);  // chrF with white space, but for that at the end of the line

// TER: Tercom's words.
struct TerWords {
  bool normalized = false;  // entities become characters, ASCII punctuation and the possessive 's stand alone
  bool no_punct = false;    // . , ? : ; ! " ( ) are removed
  bool asian = false;       // with normalized, Chinese characters stand alone; both act on Asian punctuation, too
  bool case_sensitive = false;
};
Words split_ter(std::string_view line, const TerWords& options);

// The tokenisers a user chooses for BLEU, by sacreBLEU's names.
struct ScoreTokenizer {
  const char* name;
  Words (*split)(std::string_view line);
};
inline constexpr ScoreTokenizer score_tokenizers[] = {
    {"13a", split_13a}, {"intl", split_intl}, {"char", split_characters}, {"none", split_words}, {"zh", split_zh}};

// Those that segment with a model of SentencePiece, and how sacreBLEU's signature calls the model.
struct PieceTokenizer {
  const char *name, *signature;
};
inline constexpr PieceTokenizer piece_tokenizers[] = {
    {"spm", "flores101"}, {"flores101", "flores101"}, {"flores200", "flores200"}, {"spBLEU-1K", "spBLEU-1K"}};

Words split_pieces(std::string_view line, const SentencePieces& pieces);

std::string score_tokenizer_names();  // of both tables, for messages and help

}  // namespace normlab
