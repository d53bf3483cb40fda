// The most frequent pair is merged; among equals the one with the lower ids. As the tokenizers package does it, a queue
// holds pairs with the words they were seen in, and a count that has changed is corrected when its pair comes up.
#include "normlab/data/byte_bpe_learn.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/byte_characters.h"
#include "normlab/data/pre_tokenizer.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    return std::hash<uint64_t>()((uint64_t{static_cast<uint32_t>(pair.first)} << 32) |
                                 static_cast<uint32_t>(pair.second));
  }
};

struct CountedWord {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

struct Candidate {
  int64_t count = 0;
  Pair pair;
  std::vector<size_t> words;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class ByteLearner {
 public:
  explicit ByteLearner(const std::vector<std::string>& texts) {
    tokens_.push_back(end_of_text);
    std::vector<char32_t> alphabet(byte_characters().begin(), byte_characters().end());
    std::sort(alphabet.begin(), alphabet.end());
    std::unordered_map<char32_t, int32_t> id_of;
    for (const char32_t c : alphabet) {
      id_of[c] = static_cast<int32_t>(tokens_.size());
      append_utf8(tokens_.emplace_back(), c);
    }
    for (size_t id = 0; id < tokens_.size(); ++id) id_of_.emplace(tokens_[id], static_cast<int32_t>(id));
    std::unordered_map<std::string, int64_t> counts;
    const PreTokenizer words({{"type", "ByteLevel"}, {"add_prefix_space", false}}, "bpe learn");
    for (const std::string& text : texts)
      words.split(text, PreTokenizer::Place::first, [&](std::string_view word) { ++counts[std::string(word)]; });
    for (const auto& [word, count] : counts) {
      CountedWord& row = words_.emplace_back();
      row.count = count;
      for (const char byte : word) row.symbols.push_back(id_of.at(byte_characters()[static_cast<uint8_t>(byte)]));
    }
    count_pairs();
  }

  void learn(const BpeLearning& options, const std::function<void(int)>& progress) {
    const size_t largest = tokens_.size() + static_cast<size_t>(options.operations);
    while (!queue_.empty() && tokens_.size() < largest) {
      Candidate top = queue_.top();
      queue_.pop();
      if (const int64_t now = counts_[top.pair]; now != top.count) {
        top.count = now;
        queue_.push(std::move(top));
        continue;
      }
      if (top.count < std::max<int64_t>(1, options.min_frequency)) break;
      merge(top);
      if (progress) progress(static_cast<int>(merges_.size()));
    }
  }

  size_t merges() const { return merges_.size(); }
  std::string to_json() const;

 private:
  void count_pairs() {
    std::unordered_map<Pair, std::vector<size_t>, PairHash> words_of;
    for (size_t word = 0; word < words_.size(); ++word) {
      const std::vector<int32_t>& s = words_[word].symbols;
      for (size_t i = 0; i + 1 < s.size(); ++i) {
        counts_[{s[i], s[i + 1]}] += words_[word].count;
        std::vector<size_t>& in = words_of[{s[i], s[i + 1]}];
        if (in.empty() || in.back() != word) in.push_back(word);
      }
    }
    for (auto& [pair, in] : words_of) queue_.push({counts_[pair], pair, std::move(in)});
  }

  void merge(const Candidate& top) {
    const std::string text =
        tokens_[static_cast<size_t>(top.pair.first)] + tokens_[static_cast<size_t>(top.pair.second)];
    const auto [known, is_new] = id_of_.try_emplace(text, static_cast<int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(text);
    merges_.push_back(top.pair);
    std::map<Pair, std::vector<size_t>> grown;  // pairs that gained occurrences, with the words
    for (const size_t word : top.words) merge_in(word, top.pair, known->second, grown);
    for (auto& [pair, in] : grown)
      if (counts_[pair] > 0) queue_.push({counts_[pair], pair, std::move(in)});
  }

  void merge_in(size_t word, Pair pair, int32_t id, std::map<Pair, std::vector<size_t>>& grown) {
    std::vector<int32_t>& s = words_[word].symbols;
    const int64_t count = words_[word].count;
    const auto gain = [&](Pair made) {
      counts_[made] += count;
      std::vector<size_t>& in = grown[made];
      if (in.empty() || in.back() != word) in.push_back(word);
    };
    size_t kept = 0;  // symbols before it are final
    for (size_t i = 0; i < s.size(); ++kept) {
      if (i + 1 == s.size() || s[i] != pair.first || s[i + 1] != pair.second) {
        s[kept] = s[i++];
        continue;
      }
      if (kept > 0) counts_[{s[kept - 1], pair.first}] -= count, gain({s[kept - 1], id});
      if (i + 2 < s.size()) counts_[{pair.second, s[i + 2]}] -= count, gain({id, s[i + 2]});
      s[kept] = id;
      i += 2;
    }
    s.resize(kept);
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> id_of_;
  std::vector<CountedWord> words_;
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> merges_;
};

std::string ByteLearner::to_json() const {
  using nlohmann::ordered_json;
  ordered_json vocabulary = ordered_json::object(), merges = ordered_json::array();
  for (size_t id = 0; id < tokens_.size(); ++id)
    vocabulary.get_ref<ordered_json::object_t&>().emplace_back(tokens_[id], id);
  for (const auto& [left, right] : merges_)
    merges.push_back({tokens_[static_cast<size_t>(left)], tokens_[static_cast<size_t>(right)]});
  const ordered_json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const ordered_json end = {{"id", 0},         {"content", end_of_text}, {"single_word", false}, {"lstrip", false},
                            {"rstrip", false}, {"normalized", false},    {"special", true}};
  const ordered_json file = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", ordered_json::array({end})},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", byte_level},
                             {"post_processor", nullptr},
                             {"decoder", byte_level},
                             {"model",
                              {{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", nullptr},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"ignore_merges", false},
                               {"vocab", vocabulary},
                               {"merges", merges}}}};
  return file.dump() + "\n";
}

}  // namespace

std::string learn_tokenizer_json(const std::vector<std::string>& texts, const BpeLearning& options,
                                 const std::function<void(int)>& progress) {
  for (const std::string& text : texts)
    if (const auto offset = first_invalid_utf8(text))
      throw DataError("bpe learn", concat("a text is not valid UTF-8 at byte ", *offset, "."));
  ByteLearner learner(texts);
  learner.learn(options, progress);
  if (learner.merges() == 0)
    throw DataError("bpe learn", concat("no pair of bytes occurs ", options.min_frequency,
                                        " times. Use more text or a smaller --min-frequency."));
  return learner.to_json();
}

}  // namespace normlab
