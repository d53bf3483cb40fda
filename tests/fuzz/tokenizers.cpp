// Tokenisers on any bytes: characters, the words of BLEU, chrF and TER, Moses' detokeniser, small letters.
#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/data/detokenizer.h"
#include "normlab/data/score_tokenizer.h"
#include "normlab/data/tokenizer.h"
#include "normlab/data/unicode.h"
#include "normlab/data/utf8.h"

namespace normlab {

void fuzz_tokenizers(const uint8_t* bytes, size_t size) {
  const std::string text = text_of(bytes, size);
  for (const char* kind : {"char", "byte"})
    accepts([&] {
      const Tokenizer tokenizer = Tokenizer::make(kind, text);
      const std::vector<int32_t> tokens = tokenizer.encode(text);
      require(tokenizer.decode(tokens) == text, "decoding undoes encoding");
      StreamDecoder stream(tokenizer);
      std::string streamed;
      for (const int32_t token : tokens) streamed += stream.push(token);
      streamed += stream.finish();
      require(!first_invalid_utf8(streamed), "a stream is UTF-8");
      require(first_invalid_utf8(text) || streamed == text, "a stream of UTF-8 is the text");
    });
  for (const ScoreTokenizer& tokenizer : score_tokenizers)
    for (const std::string& word : tokenizer.split(text)) require(!word.empty(), "a word has characters");
  split_ascii_spaces(text);
  split_chrf_words(text);
  split_all_characters(text);
  for (unsigned bits = 0; bits < 16; ++bits)
    split_ter(text, {.normalized = (bits & 1) != 0,
                     .no_punct = (bits & 2) != 0,
                     .asian = (bits & 4) != 0,
                     .case_sensitive = (bits & 8) != 0});
  detokenize(text);
  require(!first_invalid_utf8(to_lower(text)), "small letters are UTF-8");
}

}  // namespace normlab
