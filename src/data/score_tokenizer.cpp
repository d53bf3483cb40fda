// Tokenisers of scores: each rule is one pass over the line, as the regular expressions of the originals are.
#include "data/score_tokenizer.h"

#include "base/error.h"
#include "base/text.h"
#include "data/unicode.h"
#include "data/utf8.h"

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
  for (size_t offset = 0; offset < line.size();) {
    const Utf8Item item = decode_utf8(line, offset);
    offset += static_cast<size_t>(item.length);
    if (!is_space(item.value)) end = offset;
  }
  return line.substr(0, end);
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
  Words characters;
  for (size_t offset = 0; offset < line.size();) {
    const Utf8Item item = decode_utf8(line, offset);
    const auto length = static_cast<size_t>(item.length);
    if (!is_space(item.value)) characters.emplace_back(line.substr(offset, length));
    offset += length;
  }
  return characters;
}

Words split_13a(std::string_view line) {
  std::string text = replace_all(std::string(without_trailing_spaces(line)), "<skipped>", "");
  text = replace_all(replace_all(text, "&quot;", "\""), "&amp;", "&");
  text = replace_all(replace_all(text, "&lt;", "<"), "&gt;", ">");
  text = space_around(" " + text + " ", stands_alone);
  text = space_pairs(text, true, [](char a, char b) { return !is_digit(a) && is_stop(b); });
  text = space_pairs(text, false, [](char a, char b) { return is_stop(a) && !is_digit(b); });
  text = space_pairs(text, true, [](char a, char b) { return is_digit(a) && b == '-'; });
  return split_words(text);
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

Words split_lower_words(std::string_view line) { return split_words(to_lower(without_trailing_spaces(line))); }

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

const ScoreTokenizer& find_score_tokenizer(std::string_view name) {
  for (const ScoreTokenizer& row : score_tokenizers)
    if (name == row.name) return row;
  throw UsageError("--tokenize", str("unknown tokeniser; got '", name, "', expected 13a, intl, char or none."));
}

}  // namespace normlab
