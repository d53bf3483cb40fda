// Subwords of a language pair: learned by counting twice, without and with the filter of each language.
#include "normlab/data/pair_vocabulary.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "normlab/base/base64.h"
#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/bpe_learn.h"

namespace normlab {
namespace {

using nlohmann::json;

constexpr const char* pair_kind = "bpe pair";

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& word : split(line, ' '))
    if (!word.empty()) words.push_back(std::move(word));
  return words;
}

using Segmentation = std::function<std::string(const std::string&)>;  // of a line, with spaces between its subwords

WordCounts count_subwords(const std::vector<std::string>& lines, const Segmentation& segmented) {
  WordCounts counts;
  for (const std::string& line : lines) counts.add_line(segmented(line));
  return counts;
}

BpeVocabulary frequent(const WordCounts& counts, int64_t min_frequency) {
  BpeVocabulary kept;
  for (const auto& [word, count] : counts.rows())
    if (count >= min_frequency) kept.insert(word);
  return kept;
}

}  // namespace

PairVocabulary::PairVocabulary(BpeCodes codes, std::optional<SentencePieces> pieces, std::vector<std::string> subwords,
                               std::array<std::vector<int32_t>, 2> of_side)
    : codes_(std::move(codes)),
      pieces_(std::move(pieces)),
      subwords_(std::move(subwords)),
      of_side_(std::move(of_side)) {
  for (size_t i = 0; i < subwords_.size(); ++i) id_of_.emplace(subwords_[i], first_subword + static_cast<int32_t>(i));
  if (codes_.empty()) return;
  for (const std::vector<int32_t>& ids : of_side_) {
    BpeVocabulary own;
    for (const int32_t id : ids) own.insert(subwords_[static_cast<size_t>(id - first_subword)]);
    segmenters_.emplace_back(codes_, std::move(own));
  }
}

PairVocabulary PairVocabulary::learn(const ParallelText& text, const PairVocabularySettings& settings) {
  BpeCodes codes;
  const std::array<const std::vector<std::string>*, 2> sides = {&text.source, &text.target};
  if (!settings.pieces && settings.operations > 0) {
    WordCounts words;
    for (const auto* lines : sides)
      for (const std::string& line : *lines) words.add_line(line);
    codes = learn_bpe(words, {.operations = settings.operations});
  }
  const auto segmentation = [&](BpeSegmenter& segmenter) -> Segmentation {
    if (settings.pieces) return [&](const std::string& line) { return join(settings.pieces->segment(line), " "); };
    if (codes.empty()) return [](const std::string& line) { return line; };
    return [&](const std::string& line) { return segmenter.segment_line(line); };
  };
  // The filter of a language holds what the codes alone make of its text often enough.
  std::array<WordCounts, 2> counts;
  WordCounts joint;
  for (size_t side = 0; side < sides.size(); ++side) {
    BpeSegmenter plain(codes);
    const BpeVocabulary kept = frequent(count_subwords(*sides[side], segmentation(plain)), settings.min_frequency);
    BpeSegmenter filtered(codes, kept);
    const WordCounts final_counts = count_subwords(*sides[side], segmentation(filtered));
    for (const auto& [word, count] : final_counts.rows()) {
      if (!kept.contains(word)) continue;
      counts[side].add(word, count);
      joint.add(word, count);
    }
  }
  auto rows = joint.rows();
  std::ranges::stable_sort(rows, std::greater(), [](const auto& row) { return row.second; });
  std::vector<std::string> subwords;
  std::unordered_map<std::string, int32_t> id_of;
  for (const auto& [word, count] : rows) {
    id_of.emplace(word, first_subword + static_cast<int32_t>(subwords.size()));
    subwords.push_back(word);
  }
  std::array<std::vector<int32_t>, 2> of_side;
  for (size_t side = 0; side < sides.size(); ++side) {
    for (const auto& [word, count] : counts[side].rows()) of_side[side].push_back(id_of.at(word));
    std::ranges::sort(of_side[side]);
  }
  return {std::move(codes), settings.pieces, std::move(subwords), std::move(of_side)};
}

json PairVocabulary::to_json() const {
  json codes = json::array();
  for (const auto& [first, second] : codes_) codes.push_back(first + " " + second);
  json out = {{"kind", pair_kind},
              {"codes", std::move(codes)},
              {"subwords", subwords_},
              {"source", of_side_[0]},
              {"target", of_side_[1]}};
  if (pieces_) out["sentencepiece"] = to_base64(pieces_->model());
  return out;
}

PairVocabulary PairVocabulary::from_json(const json& in) {
  try {
    if (in.at("kind") != pair_kind)
      throw DataError("tokenizer.json", concat("got the kind '", in.at("kind").get<std::string>(), "', expected '",
                                               pair_kind, "': this is not the model of a translator."));
    BpeCodes codes;
    for (const json& line : in.at("codes")) {
      const std::vector<std::string> parts = split(line.get<std::string>(), ' ');
      if (parts.size() != 2 || parts[0].empty() || parts[1].empty())
        throw DataError("tokenizer.json", "a code does not have two parts: the file is damaged.");
      codes.emplace_back(parts[0], parts[1]);
    }
    std::vector<std::string> subwords = in.at("subwords");
    std::array<std::vector<int32_t>, 2> of_side = {in.at("source").get<std::vector<int32_t>>(),
                                                   in.at("target").get<std::vector<int32_t>>()};
    const auto past_last = first_subword + static_cast<int32_t>(subwords.size());
    for (const auto& ids : of_side)
      for (const int32_t id : ids)
        if (id < first_subword || id >= past_last)
          throw DataError("tokenizer.json", concat("there is no subword ", id, ": the file is damaged."));
    std::optional<SentencePieces> pieces;
    if (in.contains("sentencepiece")) {
      const auto model = from_base64(in.at("sentencepiece").get<std::string>());
      if (!model) throw DataError("tokenizer.json", "the SentencePiece model is not base64: the file is damaged.");
      pieces.emplace(*model, "tokenizer.json");
    }
    return {std::move(codes), std::move(pieces), std::move(subwords), std::move(of_side)};
  } catch (const json::exception& error) {
    throw DataError("tokenizer.json", concat("is not the vocabulary of a translator (", error.what(), ")."));
  }
}

std::vector<int32_t> PairVocabulary::encode(Side side, std::string_view line, const BpeDropout& dropout) {
  std::vector<int32_t> ids;
  const auto subwords = pieces_ ? pieces_->segment(line)
                        : segmenters_.empty()
                            ? words_of(line)
                            : words_of(segmenters_[static_cast<size_t>(side)].segment_line(line, dropout));
  for (const std::string& subword : subwords) {
    const auto found = id_of_.find(subword);
    ids.push_back(found == id_of_.end() ? unknown : found->second);
  }
  return ids;
}

std::string PairVocabulary::decode(const std::vector<int32_t>& ids) const {
  std::vector<std::string> words;
  for (const int32_t id : ids) {
    if (id == unknown) words.emplace_back("<unk>");
    if (id >= first_subword) words.push_back(subwords_.at(static_cast<size_t>(id - first_subword)));
  }
  return pieces_ ? pieces_->join(words) : join_subwords(join(words, " "));
}

std::vector<bool> PairVocabulary::outputs() const {
  std::vector<bool> allowed(static_cast<size_t>(size()));
  allowed[end] = allowed[unknown] = true;
  for (const int32_t id : of_side_[static_cast<size_t>(Side::target)]) allowed[static_cast<size_t>(id)] = true;
  return allowed;
}

bool PairVocabulary::operator==(const PairVocabulary& other) const {
  return codes_ == other.codes_ && pieces_ == other.pieces_ && subwords_ == other.subwords_ &&
         of_side_ == other.of_side_;
}

}  // namespace normlab
