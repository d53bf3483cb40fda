// JSON: tokenisers of checkpoints, seals and sizes, from any value.
#include "normlab/base/json.h"

#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/data/pair_vocabulary.h"
#include "normlab/data/tokenizer.h"
#include "normlab/record/checksums.h"

namespace normlab {

void fuzz_json(const uint8_t* bytes, size_t size) {
  const nlohmann::json value = parse_json(text_of(bytes, size));
  if (value.is_discarded()) return;
  accepts([&] {
    const Tokenizer tokenizer = Tokenizer::from_json(value);
    require(Tokenizer::from_json(tokenizer.to_json()) == tokenizer, "a tokeniser is read back to the same");
    std::vector<int32_t> all;
    for (int id = 0; id < tokenizer.vocab_size(); ++id) all.push_back(id);
    require(tokenizer.encode(tokenizer.decode(all)) == all, "every token is encoded to itself");
  });
  accepts([&] {
    PairVocabulary pair = PairVocabulary::from_json(value);
    require(PairVocabulary::from_json(pair.to_json()) == pair, "a vocabulary is read back to the same");
    std::vector<int32_t> all;
    for (int32_t id = 0; id < pair.size(); ++id) all.push_back(id);
    const std::string line = pair.decode(all);
    for (const Side side : {Side::source, Side::target})
      for (const int32_t id : pair.encode(side, line)) require(id >= 0 && id < pair.size(), "ids are in range");
    pair.outputs();
  });
  accepts([&] {
    if (value.is_object() && !value.empty()) size_in(value, value.begin().key().c_str());
  });
  if (!value.is_object()) return;
  nlohmann::json sealed = value;
  seal(sealed);
  require(is_intact(sealed), "what was sealed is intact");
}

}  // namespace normlab
