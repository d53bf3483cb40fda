// Detokenisation: one pass over the tokens; each is joined to its neighbours or not.
#include "normlab/data/detokenizer.h"

#include <algorithm>
#include <map>
#include <vector>

#include "normlab/base/text.h"
#include "normlab/data/unicode.h"

namespace normlab {
namespace {

struct Escape {
  std::string_view escaped, plain;
};
// In this order: the ampersand last, or what it escapes would be taken for an escape.
constexpr Escape escapes[] = {{"&bar;", "|"}, {"&#124;", "|"}, {"&lt;", "<"},    {"&gt;", ">"},
                              {"&bra;", "["}, {"&ket;", "]"},  {"&quot;", "\""}, {"&apos;", "'"},
                              {"&#91;", "["}, {"&#93;", "]"},  {"&amp;", "&"}};

struct CodeBlock {
  char32_t first, last;
};
constexpr CodeBlock cjk[] = {{0x1100, 0x11FF}, {0x2E80, 0xA4CF}, {0xA840, 0xA87F}, {0xAC00, 0xD7AF},
                             {0xF900, 0xFAFF}, {0xFE30, 0xFE4F}, {0xFF65, 0xFFDC}, {0x20000, 0x2FFFF}};

using Token = std::u32string;

bool is_cjk(char32_t c) {
  return std::ranges::any_of(cjk, [c](const CodeBlock& block) { return c >= block.first && c <= block.last; });
}
bool is_letter(char32_t c) { return char_class(c) == CharClass::letter; }
bool is_letter_or_digit(char32_t c) { return is_letter(c) || char_class(c) == CharClass::number; }
bool opens(char32_t c) { return is_currency(c) || std::u32string_view(U"([{¿¡").find(c) != std::u32string::npos; }
bool closes(char32_t c) { return std::u32string_view(U",.?!:;\\%}])").find(c) != std::u32string::npos; }
bool quotes(char32_t c) { return std::u32string_view(U"'\"„“`").find(c) != std::u32string::npos; }
bool curls(char32_t c) { return c == U'„' || c == U'“'; }

bool all(const Token& token, bool (*property)(char32_t)) {
  return !token.empty() && std::ranges::all_of(token, property);
}

class Joiner {
 public:
  explicit Joiner(bool english) : english_(english) {}

  std::string join(const std::vector<Token>& tokens) {
    for (const Token& token : tokens) {
      add(token);
      before_ = token;
    }
    return text_;
  }

 private:
  enum class Gap { both, none_before, none_after };

  void add(const Token& token) {
    const Gap gap = gap_of(token);
    const bool space = gap != Gap::none_before && space_next_ && !text_.empty();
    text_ += concat(space ? " " : "", to_utf8(token));
    space_next_ = gap != Gap::none_after;
  }

  Gap gap_of(const Token& token) {
    const bool follows_cjk = !before_.empty() && is_cjk(before_.back());
    if (is_cjk(token.front())) return follows_cjk ? Gap::none_before : Gap::both;
    if (all(token, opens)) return Gap::none_after;
    if (all(token, closes)) return Gap::none_before;
    const bool contraction = token.size() > 1 && token[0] == U'\'' && is_letter(token[1]);
    if (english_ && contraction && !before_.empty() && is_letter_or_digit(before_.back())) return Gap::none_before;
    if (all(token, quotes)) return quote_gap(token);
    return Gap::both;
  }

  // Quotes of a kind open and close in turn.
  Gap quote_gap(const Token& token) {
    int& seen = quotes_seen_[all(token, curls) ? U"\"" : token];
    const bool possessive = english_ && token == U"'" && !before_.empty() && before_.back() == U's';
    if (seen % 2 == 0 && possessive) return Gap::none_before;
    return seen++ % 2 == 0 ? Gap::none_after : Gap::none_before;
  }

  bool english_;
  std::string text_;
  Token before_;
  bool space_next_ = true;
  std::map<Token, int> quotes_seen_;
};

}  // namespace

std::string detokenize(std::string_view line, std::string_view language) {
  std::string text = replace_all(concat(" ", line, " "), " @-@ ", "-");
  for (const Escape& escape : escapes) text = replace_all(text, escape.escaped, escape.plain);
  std::vector<Token> tokens;
  for (const std::string& token : split(text, ' '))
    if (!token.empty()) tokens.push_back(to_code_points(token));
  return Joiner(language == "en").join(tokens);
}

}  // namespace normlab
