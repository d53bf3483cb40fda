// Oniguruma's expressions for PCRE2: a list of what means the same in both; everything else is refused by name.
#include "normlab/data/text_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr const char* white_space = R"(\t-\r\x{85}\p{Z})";  // PCRE2's own \s has U+180E besides

// Characters that Unicode 15 and 16 added: PCRE2 10.42 knows Unicode 14, Oniguruma 6.9.10 Unicode 16.
struct NewCharacters {
  std::string_view category, ranges;
};
constexpr std::string_view new_marks =
    R"(\x{897}\x{CF3}\x{ECE}\x{10D69}-\x{10D6D}\x{10EFC}-\x{10EFF}\x{11241}\x{113B8}-\x{113C0}\x{113C2}\x{113C5})"
    R"(\x{113C7}-\x{113CA}\x{113CC}-\x{113D0}\x{113D2}\x{113E1}-\x{113E2}\x{11F00}-\x{11F01}\x{11F03})"
    R"(\x{11F34}-\x{11F3A}\x{11F3E}-\x{11F42}\x{11F5A}\x{13440}\x{13447}-\x{13455}\x{1611E}-\x{1612F}\x{1E08F})"
    R"(\x{1E4EC}-\x{1E4EF}\x{1E5EE}-\x{1E5EF})";
constexpr std::string_view new_digits =
    R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59}\x{16130}-\x{16139})"
    R"(\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})";
constexpr std::array new_characters = {
    NewCharacters{
        "L",
        R"(\x{1C89}-\x{1C8A}\x{A7CB}-\x{A7CD}\x{A7DA}-\x{A7DC}\x{105C0}-\x{105F3}\x{10D4A}-\x{10D65})"
        R"(\x{10D6F}-\x{10D85}\x{10EC2}-\x{10EC4}\x{1123F}-\x{11240}\x{11380}-\x{11389}\x{1138B}\x{1138E})"
        R"(\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3}\x{11BC0}-\x{11BE0}\x{11F02}\x{11F04}-\x{11F10})"
        R"(\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446}\x{13460}-\x{143FA}\x{16100}-\x{1611D})"
        R"(\x{16D40}-\x{16D6C}\x{18CFF}\x{1B132}\x{1B155}\x{1DF25}-\x{1DF2A}\x{1E030}-\x{1E06D}\x{1E4D0}-\x{1E4EB})"
        R"(\x{1E5D0}-\x{1E5ED}\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"},
    NewCharacters{"Lu", R"(\x{1C89}\x{A7CB}-\x{A7CC}\x{A7DA}\x{A7DC}\x{10D50}-\x{10D65})"},
    NewCharacters{"Ll", R"(\x{1C8A}\x{A7CD}\x{A7DB}\x{10D70}-\x{10D85}\x{1DF25}-\x{1DF2A})"},
    NewCharacters{"Lm", R"(\x{10D4E}\x{10D6F}\x{16D40}-\x{16D42}\x{16D6B}-\x{16D6C}\x{1E030}-\x{1E06D}\x{1E4EB})"},
    NewCharacters{
        "Lo",
        R"(\x{105C0}-\x{105F3}\x{10D4A}-\x{10D4D}\x{10D4F}\x{10EC2}-\x{10EC4}\x{1123F}-\x{11240}\x{11380}-\x{11389})"
        R"(\x{1138B}\x{1138E}\x{11390}-\x{113B5}\x{113B7}\x{113D1}\x{113D3}\x{11BC0}-\x{11BE0}\x{11F02})"
        R"(\x{11F04}-\x{11F10}\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446}\x{13460}-\x{143FA})"
        R"(\x{16100}-\x{1611D}\x{16D43}-\x{16D6A}\x{18CFF}\x{1B132}\x{1B155}\x{1E4D0}-\x{1E4EA})"
        R"(\x{1E5D0}-\x{1E5ED}\x{1E5F0}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})"},
    NewCharacters{"Lt", ""},
    NewCharacters{"M", new_marks},
    NewCharacters{"N",
                  R"(\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11F50}-\x{11F59}\x{16130}-\x{16139})"
                  R"(\x{16D70}-\x{16D79}\x{1CCF0}-\x{1CCF9}\x{1D2C0}-\x{1D2D3}\x{1E4F0}-\x{1E4F9}\x{1E5F1}-\x{1E5FA})"},
    NewCharacters{"Nd", new_digits},
    NewCharacters{
        "P", R"(\x{1B4E}-\x{1B4F}\x{1B7F}\x{10D6E}\x{113D4}-\x{113D5}\x{113D7}-\x{113D8}\x{11B00}-\x{11B09}\x{11BE1})"
             R"(\x{11F43}-\x{11F4F}\x{16D6D}-\x{16D6F}\x{1E5FF})"},
    NewCharacters{"S",
                  R"(\x{2427}-\x{2429}\x{2FFC}-\x{2FFF}\x{31E4}-\x{31E5}\x{31EF}\x{10D8E}-\x{10D8F}\x{1CC00}-\x{1CCEF})"
                  R"(\x{1CD00}-\x{1CEB3}\x{1F6DC}\x{1F774}-\x{1F776}\x{1F77B}-\x{1F77F}\x{1F7D9}\x{1F8B2}-\x{1F8BB})"
                  R"(\x{1F8C0}-\x{1F8C1}\x{1FA75}-\x{1FA77}\x{1FA87}-\x{1FA89}\x{1FA8F}\x{1FAAD}-\x{1FAAF})"
                  R"(\x{1FABB}-\x{1FABF}\x{1FAC6}\x{1FACE}-\x{1FACF}\x{1FADA}-\x{1FADC}\x{1FADF}\x{1FAE8}-\x{1FAE9})"
                  R"(\x{1FAF7}-\x{1FAF8}\x{1FBCB}-\x{1FBEF})"},
    NewCharacters{"Z", ""},
};

// Reads an expression of Oniguruma and writes one of PCRE2.
class Translation {
 public:
  Translation(const std::string& in, const std::string& where) : in_(in), where_(where) {}

  std::string run() {
    for (; at_ < in_.size(); ++at_) {
      const char c = in_[at_];
      if (c == '\\')
        escape();
      else if (in_class_)
        class_item(c);
      else
        item(c);
    }
    if (in_class_) refuse("[ without ]");
    return out_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(where_, concat("the pattern '", in_, "' has ", what, ", which is not supported."));
  }
  bool follows(std::string_view text) const { return std::string_view(in_).substr(at_).starts_with(text); }

  // A class such as \s, as its items within brackets.
  void character_class(std::string_view items, bool negated) {
    if (in_class_ && negated) refuse("a negated class inside [ ]");
    out_ += in_class_ ? std::string(items) : concat(negated ? "[^" : "[", items, "]");
  }

  void property(bool negated) {
    const size_t close = in_.find('}', at_);
    if (at_ + 1 >= in_.size() || in_[at_ + 1] != '{' || close == std::string::npos) refuse("\\p without a name");
    const std::string name = in_.substr(at_ + 2, close - at_ - 2);
    at_ = close;
    for (const auto& [category, ranges] : new_characters)
      if (name == category) return character_class(concat("\\p{", name, "}", ranges), negated);
    refuse(concat("\\p{", name, "}"));
  }

  void escape() {
    if (++at_ == in_.size()) refuse("a lone \\");
    const char c = in_[at_];
    if (c == 's' || c == 'S') return character_class(white_space, c == 'S');
    if (c == 'd' || c == 'D') return character_class(concat("\\p{Nd}", new_digits), c == 'D');
    if (c == 'p' || c == 'P') return property(c == 'P');
    const bool letter_or_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter_or_digit && c != 'r' && c != 'n' && c != 't') refuse(concat("\\", c));
    out_ += '\\';
    out_ += c;
  }

  void class_item(char c) {
    if (c == '[' || follows("&&")) refuse("[ or && inside [ ]");
    if (c == ']') in_class_ = false;
    out_ += c;
  }

  void item(char c) {
    if (c == '(' && follows("(?") && !follows("(?:") && !follows("(?i:") && !follows("(?!") && !follows("(?="))
      refuse("a group other than (?:, (?i:, (?! and (?=");
    if (follows("}+") || follows("}?")) refuse("{n,m} followed by + or ?");
    if (c == '^' || c == '$') refuse(concat(c, " outside [ ]"));
    out_ += c;
    if (c != '[') return;
    in_class_ = true;
    for (const char first : {'^', ']'})  // a ] that comes first is a character
      if (at_ + 1 < in_.size() && in_[at_ + 1] == first) out_ += in_[++at_];
  }

  const std::string& in_;
  const std::string& where_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

struct TextPattern::Compiled {
  pcre2_code* code = nullptr;
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pcre2_code_free(code); }
};

std::string pcre2_expression(const std::string& expression, const std::string& where) {
  return Translation(expression, where).run();
}

TextPattern::TextPattern(const std::string& expression, const std::string& where) {
  const std::string translated = pcre2_expression(expression, where);
  auto compiled = std::make_shared<Compiled>();
  int error = 0;
  size_t offset = 0;
  compiled->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, /*ccontext=*/nullptr);
  if (!compiled->code) {
    std::array<unsigned char, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    throw DataError(where, concat("the pattern '", expression,
                                  "' is not valid: ", reinterpret_cast<const char*>(message.data()), "."));
  }
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // without it, matching is slower
  compiled_ = compiled;
  if (find("", 0).first != std::string_view::npos)
    throw DataError(where, concat("the pattern '", expression, "' matches the empty text, which is not supported."));
}

TextPattern TextPattern::literal(const std::string& text, const std::string& where) {
  if (text.empty()) throw DataError(where, "a pattern is empty; expected text.");
  TextPattern pattern;
  pattern.literal_ = text;
  return pattern;
}

TextPattern pattern_from_json(const nlohmann::json& json, const std::string& where) {
  if (json.contains("String")) return TextPattern::literal(json.at("String"), where);
  return {json.at("Regex").get<std::string>(), where};
}

std::pair<size_t, size_t> TextPattern::find(std::string_view text, size_t from) const {
  if (!compiled_) {
    const size_t begin = text.find(literal_, from);
    return {begin, begin == text.npos ? text.npos : begin + literal_.size()};
  }
  struct Match {
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
    ~Match() { pcre2_match_data_free(data); }
  };
  thread_local const Match match;
  const int result = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                 PCRE2_NO_UTF_CHECK, match.data, /*mcontext=*/nullptr);
  if (result == PCRE2_ERROR_NOMATCH) return {text.npos, text.npos};
  if (result < 0)
    throw DataError("tokenizer.json", concat("a pattern of the pre-tokeniser gave up on the text at byte ", from,
                                             " (PCRE2 error ", result, ")."));
  const size_t* range = pcre2_get_ovector_pointer(match.data);
  return {range[0], range[1]};
}

}  // namespace normlab
