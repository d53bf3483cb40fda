// A tokenizer.json and a text: whatever the file says, tokens are of its vocabulary, and cuts change none of them.
#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/data/subword_tokenizer.h"

namespace normlab {

void fuzz_tokenizer_json(const uint8_t* bytes, size_t size) {
  const auto inputs = parts_of(bytes, size, 2);  // the file, a text
  accepts([&] {
    const SubwordTokenizer tokenizer(inputs[0], "input");
    const std::string& text = inputs[1];
    const std::vector<int32_t> tokens = tokenizer.encode(text, "text");
    for (const int32_t token : tokens)
      require(token >= 0 && token < tokenizer.vocab_size(), "tokens are of the vocabulary");
    tokenizer.decode(tokens);
    for (size_t at = 0; at <= text.size(); ++at) {
      if (!tokenizer.can_cut(text, at)) continue;
      BpeModel::Cache cache;
      std::vector<int32_t> parts = tokenizer.encode(text.substr(0, at), "text");
      const auto rest = tokenizer.encode(text.substr(at), "text", SubwordTokenizer::Part::later, cache);
      parts.insert(parts.end(), rest.begin(), rest.end());
      require(parts == tokens, "a cut changes no token");
    }
  });
}

}  // namespace normlab
