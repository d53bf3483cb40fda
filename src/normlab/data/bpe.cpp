// Byte pair encoding: codes and vocabulary files, segmentation of words, and its undoing.
#include "normlab/data/bpe.h"

#include <algorithm>
#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/text_lines.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

constexpr std::string_view version_line = "#version: 0.2";
constexpr std::string_view line_space = "\r\n ";  // what may stand at the ends of a line

std::string_view strip(std::string_view text) {
  const size_t first = text.find_first_not_of(line_space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(line_space) - first + 1);
}

// The characters of a word, the last one with the mark of the word's end.
std::vector<std::string> word_symbols(std::string_view word) {
  std::vector<std::string> symbols;
  for_each_code_point(word, [&](char32_t c, size_t) { append_utf8(symbols.emplace_back(), c); });
  symbols.back() += bpe_word_end;
  return symbols;
}

std::string code_line(const std::string& left, const std::string& right) { return concat(left, ' ', right); }

bool is_one_character(std::string_view word) { return static_cast<size_t>(decode_utf8(word, 0).length) == word.size(); }

// Replaces every pair at `positions`, from the left; a pair that begins inside a replaced one is left.
void merge_at(std::vector<std::string>& symbols, const std::vector<size_t>& positions) {
  std::vector<std::string> out;
  size_t next = 0;
  for (const size_t position : positions) {
    if (position < next) continue;
    for (; next < position; ++next) out.push_back(std::move(symbols[next]));
    out.push_back(symbols[position] + symbols[position + 1]);
    next = position + 2;
  }
  for (; next < symbols.size(); ++next) out.push_back(std::move(symbols[next]));
  symbols = std::move(out);
}

}  // namespace

BpeCodes read_bpe_codes(const std::filesystem::path& path) {
  const std::string where = path.string();
  const std::vector<std::string> lines = read_lines(path);
  if (strip(lines[0]) != version_line)
    throw DataError(where,
                    concat("is not a file of BPE codes of version 0.2; got '", lines[0].substr(0, 60),
                           "' in the first line, expected '", version_line, "'. `normlab bpe learn` writes one."));
  BpeCodes codes;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> parts = split(strip(lines[i]), ' ');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty())
      throw DataError(where, concat("wrong merge in line ", i + 1, "; got '", lines[i].substr(0, 60),
                                    "', expected two subwords with a space between."));
    codes.emplace_back(parts[0], parts[1]);
  }
  if (codes.empty()) throw DataError(where, "has no merges; expected one per line after the version.");
  return codes;
}

std::vector<std::string_view> bpe_lines(std::string_view text) {
  constexpr std::u32string_view line_ends = U"\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029";
  std::vector<std::string_view> lines;
  size_t start = 0;
  for_each_code_point(text, [&](char32_t c, size_t offset) {
    if (line_ends.find(c) == std::u32string_view::npos || text.substr(offset, 2) == "\r\n") return;
    const size_t end = offset + static_cast<size_t>(decode_utf8(text, offset).length);
    lines.push_back(text.substr(start, end - start));
    start = end;
  });
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string to_text(const BpeCodes& codes) {
  std::string text = concat(version_line, '\n');
  for (const auto& [left, right] : codes) text += code_line(left, right) + '\n';
  return text;
}

void WordCounts::add(std::string_view word, int64_t count) {
  const auto [found, is_new] = row_of_.try_emplace(std::string(word), rows_.size());
  if (is_new) rows_.emplace_back(word, 0);
  rows_[found->second].second += count;
}

void WordCounts::add_line(std::string_view line) {
  for (const std::string& word : split(strip(line), ' '))
    if (!word.empty()) add(word);
}

std::string WordCounts::to_text() const {
  auto sorted = rows_;
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [word, count] : sorted) text += concat(word, ' ', count, '\n');
  return text;
}

BpeVocabulary read_bpe_vocabulary(const std::filesystem::path& path, int64_t threshold) {
  const std::string where = path.string();
  BpeVocabulary vocabulary;
  const std::vector<std::string> lines = read_lines(path);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::vector<std::string> parts = split(strip(lines[i]), ' ');
    const auto count = parts.size() == 2 ? parse_integer(parts[1]) : std::nullopt;
    if (!count)
      throw DataError(where, concat("wrong line ", i + 1, " of a vocabulary; got '", lines[i].substr(0, 60),
                                    "', expected a subword, a space and its count."));
    if (*count >= threshold) vocabulary.insert(parts[0]);
  }
  if (vocabulary.empty())
    throw DataError(where, concat("has no subword that occurs ", threshold, " times. Use a smaller threshold."));
  return vocabulary;
}

BpeSegmenter::BpeSegmenter(const BpeCodes& codes, BpeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
  // Of equal merges the first counts; of merges into the same symbol, the one that was learned first.
  for (size_t i = codes.size(); i-- > 0;) {
    const auto [found, is_new] = rank_of_.insert_or_assign(code_line(codes[i].first, codes[i].second), i);
    if (is_new) parts_of_[codes[i].first + codes[i].second] = codes[i];
  }
}

std::vector<std::string> BpeSegmenter::merged(std::string_view word, const BpeDropout& dropout, uint64_t& draws) const {
  std::vector<std::string> symbols = word_symbols(word);
  while (symbols.size() > 1) {
    std::optional<size_t> best;
    std::vector<size_t> positions;  // of the pair of rank `best`
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (dropout.rate > 0 && draw_uniform(dropout.key, draws++) < dropout.rate) continue;
      const auto found = rank_of_.find(code_line(symbols[i], symbols[i + 1]));
      if (found == rank_of_.end() || (best && found->second > *best)) continue;
      if (!best || found->second < *best) positions.clear();
      best = found->second;
      positions.push_back(i);
    }
    if (!best) break;
    merge_at(symbols, positions);
  }
  std::string& last = symbols.back();
  if (last.ends_with(bpe_word_end)) last.resize(last.size() - bpe_word_end.size());
  return symbols;
}

bool BpeSegmenter::knows(const std::string& part, bool last) const {
  return vocabulary_.contains(last ? part : part + std::string(bpe_joiner));
}

// Takes the merges back until every part is in the vocabulary or a single character.
void BpeSegmenter::split_unknown(const std::string& part, bool last, std::vector<std::string>& out) const {
  const auto found = parts_of_.find(last ? part + std::string(bpe_word_end) : part);
  // Both halves must be shorter than the part, whatever the codes say, or this would not end.
  const auto splits = [&](const auto& merge) {
    return !merge.first.empty() && merge.second.size() > (last ? bpe_word_end.size() : 0) &&
           (!last || merge.second.ends_with(bpe_word_end));
  };
  if (knows(part, last) || found == parts_of_.end() || !splits(found->second)) {
    out.push_back(part);
    return;
  }
  auto [left, right] = found->second;
  if (last) right.resize(right.size() - bpe_word_end.size());
  split_unknown(left, false, out);
  split_unknown(right, last, out);
}

std::vector<std::string> BpeSegmenter::segment(std::string_view word, const BpeDropout& dropout,
                                               uint64_t& draws) const {
  if (word.empty()) return {};
  if (is_one_character(word)) return {std::string(word)};
  std::vector<std::string> parts = merged(word, dropout, draws);
  if (vocabulary_.empty()) return parts;
  std::vector<std::string> out;
  for (size_t i = 0; i < parts.size(); ++i) split_unknown(parts[i], i + 1 == parts.size(), out);
  return out;
}

std::vector<std::string> BpeSegmenter::segment(std::string_view word) {
  const auto [found, is_new] = cache_.try_emplace(std::string(word));
  uint64_t draws = 0;
  if (is_new) found->second = segment(word, {}, draws);
  return found->second;
}

std::string BpeSegmenter::segment_line(std::string_view line, const BpeDropout& dropout) {
  const std::string_view words = strip(line);
  if (words.empty()) return std::string(line);
  std::string out(line.substr(0, static_cast<size_t>(words.data() - line.data())));
  uint64_t draws = 0;
  bool first = true;
  for (const std::string& word : split(words, ' ')) {
    const auto parts = dropout.rate > 0 ? segment(word, dropout, draws) : segment(word);
    for (size_t i = 0; i < parts.size(); ++i) {
      out += concat(first ? "" : " ", parts[i], i + 1 < parts.size() ? bpe_joiner : "");
      first = false;
    }
  }
  return out += line.substr(static_cast<size_t>(words.data() - line.data()) + words.size());
}

std::string join_subwords(std::string_view line) {
  std::string out = replace_all(std::string(line), concat(bpe_joiner, ' '), "");
  if (out.ends_with(bpe_joiner)) out.resize(out.size() - bpe_joiner.size());
  return out;
}

}  // namespace normlab
