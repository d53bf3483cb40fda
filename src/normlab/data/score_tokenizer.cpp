// Tokenisers of scores: each rule is one pass over the line, as the regular expressions of the originals are.
#include "normlab/data/score_tokenizer.h"

#include <algorithm>
#include <span>

#include "normlab/base/text.h"
#include "normlab/data/unicode.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }
bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
// All ASCII punctuation that 13a always sets apart: not the apostrophe, comma, dash and full stop.
bool stands_alone(char c) { return is_ascii_punctuation(c) && c != '\'' && c != ',' && c != '-' && c != '.'; }

bool is_punctuation(char32_t c) { return char_class(c) == CharClass::punctuation; }
bool is_number(char32_t c) { return char_class(c) == CharClass::number; }

// Rewrites every match of a pair of neighbouring characters, from the left, without overlap: spaces around the second
// one (after_first) or around the first one. Works on bytes where the rule's characters are ASCII.
template <class Text, class Matches>
Text space_pairs(const Text& text, bool after_first, Matches matches) {
  Text out;
  out.reserve(text.size() + 16);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    if (!after_first) out += ' ';
    out += text[i];
    out += ' ';
    out += text[++i];
    if (after_first) out += ' ';
  }
  return out;
}

template <class Text, class Matches>
Text space_around(const Text& text, Matches matches) {
  Text out;
  out.reserve(text.size() + 16);
  for (const auto c : text) {
    const bool match = matches(c);
    if (match) out += ' ';
    out += c;
    if (match) out += ' ';
  }
  return out;
}

std::string_view without_trailing_spaces(std::string_view line) {
  size_t end = 0;
  for_each_code_point(line, [&](char32_t c, size_t offset) {
    if (!is_space(c)) end = offset + static_cast<size_t>(decode_utf8(line, offset).length);
  });
  return line.substr(0, end);
}

// The last steps of 13a, which other tokenisers share: stops stand apart but between digits, dashes after digits.
std::string space_stops(std::string text) {
  text = space_pairs(text, true, [](char a, char b) { return !is_digit(a) && is_stop(b); });
  text = space_pairs(text, false, [](char a, char b) { return is_stop(a) && !is_digit(b); });
  return space_pairs(text, true, [](char a, char b) { return is_digit(a) && b == '-'; });
}

std::string replace_entities(std::string text) {
  text = replace_all(replace_all(text, "&quot;", "\""), "&amp;", "&");
  return replace_all(replace_all(text, "&lt;", "<"), "&gt;", ">");
}

struct CharRange {
  char32_t first, last;
};
bool in_any(std::span<const CharRange> ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](const CharRange& range) { return c >= range.first && c <= range.last; });
}

// What sacreBLEU's zh sets apart: ideographs, radicals, CJK punctuation and full-width forms. Its two ranges beyond
// the basic plane are written with four digits and a fifth character, so that they hold U+2001 to U+2A6D instead:
// punctuation, arrows and mathematical symbols.
constexpr CharRange zh_characters[] = {{0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x303F},
                                       {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF},
                                       {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
                                       {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};

// What Tercom sets apart in Asian text, and which of it is punctuation. Its rules for kana never match: they want a
// line of kana alone, and normalised lines begin with a space.
constexpr CharRange ter_asian_characters[] = {{0x2E80, 0x2EFF}, {0x31C0, 0x31EF}, {0x3200, 0x3F22}, {0x3400, 0x4DBF},
                                              {0x4E00, 0x9FFF}, {0xF900, 0xFAFF}, {0xFE30, 0xFE4F}};
constexpr CharRange ter_asian_punctuation[] = {{0x3001, 0x3002}, {0x3008, 0x3011}, {0x3014, 0x301F}, {0x30FB, 0x30FB},
                                               {0xFF01, 0xFF02}, {0xFF08, 0xFF09}, {0xFF0C, 0xFF0C}, {0xFF0E, 0xFF0E},
                                               {0xFF1A, 0xFF1B}, {0xFF1F, 0xFF1F}, {0xFF61, 0xFF65}};

std::string ter_normalized(std::string_view line, bool asian) {
  std::string text = space_around(concat(" ", replace_entities(std::string(line)), " "), stands_alone);
  text = space_stops(replace_all(text, "'s ", " 's "));
  if (!asian) return text;
  return to_utf8(space_around(to_code_points(text), [](char32_t c) {
    return in_any(ter_asian_characters, c) || in_any(ter_asian_punctuation, c);
  }));
}

}  // namespace

Words split_words(std::string_view line) {
  Words words;
  bool inside = false;
  for (size_t offset = 0; offset < line.size();) {
    const Utf8Item item = decode_utf8(line, offset);
    const bool space = is_space(item.value);
    if (!space && !inside) words.emplace_back();
    if (!space) words.back() += line.substr(offset, static_cast<size_t>(item.length));
    inside = !space;
    offset += static_cast<size_t>(item.length);
  }
  return words;
}

Words split_characters(std::string_view line) {
  Words characters = split_all_characters(line);
  std::erase_if(characters, [](const std::string& c) { return is_space(decode_utf8(c, 0).value); });
  return characters;
}

Words split_all_characters(std::string_view line) {
  Words characters;
  const std::string_view text = without_trailing_spaces(line);
  for_each_code_point(text, [&](char32_t, size_t offset) {
    characters.emplace_back(text.substr(offset, static_cast<size_t>(decode_utf8(text, offset).length)));
  });
  return characters;
}

Words split_13a(std::string_view line) {
  std::string text = replace_all(std::string(without_trailing_spaces(line)), "<skipped>", "");
  return split_words(space_stops(space_around(concat(" ", replace_entities(text), " "), stands_alone)));
}

Words split_zh(std::string_view line) {
  const std::u32string text = to_code_points(without_trailing_spaces(line));
  size_t begin = 0;
  while (begin < text.size() && is_space(text[begin])) ++begin;
  const auto spaced = space_around(text.substr(begin), [](char32_t c) { return in_any(zh_characters, c); });
  return split_words(space_stops(space_around(to_utf8(spaced), stands_alone)));
}

Words split_intl(std::string_view line) {
  std::u32string text = to_code_points(without_trailing_spaces(line));
  text = space_pairs(text, true, [](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); });
  text = space_pairs(text, false, [](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); });
  text = space_around(text, [](char32_t c) { return char_class(c) == CharClass::symbol; });
  return split_words(to_utf8(text));
}

Words split_ascii_spaces(std::string_view line) {
  Words words;
  bool inside = false;
  for (const char c : line) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space && !inside) words.emplace_back();
    if (!space) words.back() += c;
    inside = !space;
  }
  return words;
}

Words split_ter(std::string_view line, const TerWords& options) {
  std::string text(without_trailing_spaces(line));
  if (!options.case_sensitive) text = to_lower(text);
  if (options.normalized) text = ter_normalized(text, options.asian);
  if (options.no_punct)
    std::erase_if(text, [](char c) { return std::string_view(".,?:;!\"()").find(c) != std::string_view::npos; });
  if (options.no_punct && options.asian) {
    std::u32string points = to_code_points(text);
    std::erase_if(points, [](char32_t c) { return in_any(ter_asian_punctuation, c); });
    text = to_utf8(points);
  }
  return split_words(text);
}

Words split_chrf_words(std::string_view line) {
  Words out;
  for (const std::string& word : split_words(line)) {
    const bool one_character = static_cast<size_t>(decode_utf8(word, 0).length) == word.size();
    if (!one_character && is_ascii_punctuation(word.back())) {
      out.push_back(word.substr(0, word.size() - 1));
      out.push_back(word.substr(word.size() - 1));
    } else if (!one_character && is_ascii_punctuation(word.front())) {
      out.push_back(word.substr(0, 1));
      out.push_back(word.substr(1));
    } else {
      out.push_back(word);
    }
  }
  return out;
}

Words split_pieces(std::string_view line, const SentencePieces& pieces) {
  return split_words(join(pieces.segment(without_trailing_spaces(line)), " "));
}

std::string score_tokenizer_names() {
  std::vector<std::string> names;
  for (const ScoreTokenizer& row : score_tokenizers) names.push_back(row.name);
  for (const PieceTokenizer& row : piece_tokenizers) names.push_back(row.name);
  return join(names, ", ");
}

}  // namespace normlab
