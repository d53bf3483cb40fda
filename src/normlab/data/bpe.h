// Byte pair encoding (Sennrich, Haddow and Birch, 2016) that equals subword-nmt 0.3.8: its codes file, its segmentation
// with a vocabulary filter, `@@` after every part of a word but the last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "normlab/base/random.h"

namespace normlab {

inline constexpr std::string_view bpe_joiner = "@@";
inline constexpr std::string_view bpe_word_end = "</w>";  // ends the last symbol of a word in the codes

using BpePair = std::pair<std::string, std::string>;
using BpeCodes = std::vector<BpePair>;  // merges, in the order in which they were learned

BpeCodes read_bpe_codes(const std::filesystem::path& path);  // DataError unless it is of version 0.2
std::string to_text(const BpeCodes& codes);                  // the content of a codes file

// The lines of a text as subword-nmt reads them, each with its end: line feed, carriage return or both, but also the
// other characters at which Python's str.splitlines ends a line.
std::vector<std::string_view> bpe_lines(std::string_view text);

// Words with their counts, in the order of first appearance.
class WordCounts {
 public:
  void add(std::string_view word, int64_t count = 1);
  void add_line(std::string_view line);  // the words between its spaces
  const std::vector<std::pair<std::string, int64_t>>& rows() const { return rows_; }
  std::string to_text() const;  // a vocabulary file: "word count" a line, the most frequent first

 private:
  std::vector<std::pair<std::string, int64_t>> rows_;
  std::unordered_map<std::string, size_t> row_of_;
};

// The subwords, joiners included, of a vocabulary file that occur at least `threshold` times.
using BpeVocabulary = std::unordered_set<std::string>;
BpeVocabulary read_bpe_vocabulary(const std::filesystem::path& path, int64_t threshold);

// BPE dropout (Provilkov et al., 2020): each possible merge is skipped with this probability, by draws of the key.
struct BpeDropout {
  double rate = 0;
  uint64_t key = 0;  // e.g. stream_key(seed, epoch, line)
};

class BpeSegmenter {
 public:
  // An empty vocabulary filters nothing; with one, a subword outside it is split until all parts are inside it.
  explicit BpeSegmenter(const BpeCodes& codes, BpeVocabulary vocabulary = {});

  std::vector<std::string> segment(std::string_view word);  // the parts, without joiners
  std::vector<std::string> segment(std::string_view word, const BpeDropout& dropout, uint64_t& draws) const;

  // The line with its words segmented and single spaces; space and line breaks at its ends stay.
  std::string segment_line(std::string_view line, const BpeDropout& dropout = {});

 private:
  std::vector<std::string> merged(std::string_view word, const BpeDropout& dropout, uint64_t& draws) const;
  void split_unknown(const std::string& part, bool last, std::vector<std::string>& out) const;
  bool knows(const std::string& part, bool last) const;

  std::unordered_map<std::string, size_t> rank_of_;    // by the line of the codes file
  std::unordered_map<std::string, BpePair> parts_of_;  // a merged symbol's two parts
  BpeVocabulary vocabulary_;
  std::unordered_map<std::string, std::vector<std::string>> cache_;
};

// Undoes the segmentation of a line: a part that ends in the joiner is joined with the next one.
std::string join_subwords(std::string_view line);

}  // namespace normlab
