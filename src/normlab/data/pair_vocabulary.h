// The subwords of a language pair: joint byte pair codes or a SentencePiece model, what each language has of them, ids.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/bpe.h"
#include "normlab/data/parallel_text.h"
#include "normlab/data/sentencepiece.h"

namespace normlab {

enum class Side { source, target };

struct PairVocabularySettings {
  int operations = 8000;      // merges; 0: the text is segmented already, its words are the subwords
  int64_t min_frequency = 1;  // a subword of a language that occurs less often there is split or unknown
  std::optional<SentencePieces> pieces = {};  // in place of merges
};

class PairVocabulary {
 public:
  static constexpr int32_t padding = 0, begin = 1, end = 2, unknown = 3, first_subword = 4;

  // A pure function of text and settings; codes are learned from both sides together.
  static PairVocabulary learn(const ParallelText& text, const PairVocabularySettings& settings);
  static PairVocabulary from_json(const nlohmann::json& json);  // DataError for another kind of vocabulary
  nlohmann::json to_json() const;

  int size() const { return first_subword + static_cast<int>(subwords_.size()); }
  // Of a line of that side, without marks of begin and end; a SentencePiece model knows no dropout.
  std::vector<int32_t> encode(Side side, std::string_view line, const BpeDropout& dropout = {});
  // Subwords joined to words; marks are left out.
  std::string decode(const std::vector<int32_t>& ids) const;
  // Which ids the target language may output: its subwords, the end and the unknown.
  std::vector<bool> outputs() const;

  bool operator==(const PairVocabulary& other) const;

 private:
  PairVocabulary(BpeCodes codes, std::optional<SentencePieces> pieces, std::vector<std::string> subwords,
                 std::array<std::vector<int32_t>, 2> of_side);

  BpeCodes codes_;
  std::optional<SentencePieces> pieces_;
  std::vector<std::string> subwords_;            // by id, from first_subword on
  std::array<std::vector<int32_t>, 2> of_side_;  // ids that a side has, ascending
  std::unordered_map<std::string, int32_t> id_of_;
  std::vector<BpeSegmenter> segmenters_;  // of source and target; none without codes
};

}  // namespace normlab
