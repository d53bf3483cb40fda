// Unicode properties: utf8proc's tables, and what was assigned after the Unicode 15.0 that Debian 12's version knows.
#include "normlab/data/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>

#include "normlab/data/utf8.h"

namespace normlab {
namespace {

struct CodeRange {
  char32_t first, last;
};

// Unicode 15.1 to 18. A newer utf8proc knows them itself.
constexpr CodeRange later_punctuation[] = {
    {0x1B4E, 0x1B4F},   {0x1B7F, 0x1B7F},   {0x2E60, 0x2E63},   {0x10D6E, 0x10D6E}, {0x10ED0, 0x10ED0},
    {0x113D4, 0x113D5}, {0x113D7, 0x113D8}, {0x11BE1, 0x11BE1}, {0x16D6D, 0x16D6F}, {0x1E5FF, 0x1E5FF},
};
constexpr CodeRange later_symbols[] = {
    {0x20C1, 0x20C4},   {0x2427, 0x2429},   {0x2B96, 0x2B96},   {0x2FFC, 0x2FFF},   {0x31E4, 0x31E5},
    {0x31EF, 0x31EF},   {0xFBC3, 0xFBD2},   {0xFD90, 0xFD91},   {0xFDC8, 0xFDCE},   {0x10D8E, 0x10D8F},
    {0x10EC9, 0x10ECA}, {0x10ED1, 0x10ED8}, {0x1CC00, 0x1CCEF}, {0x1CCFA, 0x1CCFC}, {0x1CD00, 0x1CEB3},
    {0x1CEBA, 0x1CED0}, {0x1CED2, 0x1CED4}, {0x1CEDD, 0x1CEFD}, {0x1D1EB, 0x1D1FF}, {0x1D253, 0x1D25A},
    {0x1D25D, 0x1D25E}, {0x1D260, 0x1D27F}, {0x1DB00, 0x1DB1C}, {0x1F1AE, 0x1F1AE}, {0x1F6D8, 0x1F6D9},
    {0x1F777, 0x1F77A}, {0x1F7DA, 0x1F7DB}, {0x1F7F1, 0x1F7FF}, {0x1F8B2, 0x1F8BB}, {0x1F8C0, 0x1F8C1},
    {0x1F8D0, 0x1F8D8}, {0x1FA54, 0x1FA57}, {0x1FA89, 0x1FA8F}, {0x1FABE, 0x1FABE}, {0x1FAC6, 0x1FAC6},
    {0x1FAC8, 0x1FAC8}, {0x1FACC, 0x1FACD}, {0x1FADC, 0x1FADD}, {0x1FADF, 0x1FADF}, {0x1FAE9, 0x1FAEB},
    {0x1FAEF, 0x1FAEF}, {0x1FAF9, 0x1FAFA}, {0x1FBCB, 0x1FBEF}, {0x1FBFA, 0x1FBFA},
};
constexpr CodeRange later_numbers[] = {
    {0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x11DE0, 0x11DE9},
    {0x1246F, 0x1246F}, {0x12475, 0x1247F}, {0x12550, 0x12686}, {0x16130, 0x16139},
    {0x16D70, 0x16D79}, {0x16FF4, 0x16FF6}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA},
};
// Letters with case that are no Lu, Ll or Lt: ordinals, Roman numerals, circled and squared letters.
constexpr CodeRange other_cased[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2160, 0x217F},   {0x24B6, 0x24E9},
    {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189},
};
// Punctuation inside words, which the rule of the final sigma looks through.
constexpr char32_t inside_words[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                     0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};

bool in_ranges(std::span<const CodeRange> ranges, char32_t c) {
  const auto range = std::ranges::lower_bound(ranges, c, {}, &CodeRange::last);
  return range != ranges.end() && c >= range->first;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

CharClass later_class(char32_t c) {
  if (in_ranges(later_punctuation, c)) return CharClass::punctuation;
  if (in_ranges(later_symbols, c)) return CharClass::symbol;
  return in_ranges(later_numbers, c) ? CharClass::number : CharClass::other;
}

bool is_cased(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT ||
         in_ranges(other_cased, c);
}

// The property Case_Ignorable.
bool is_case_ignorable(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK ||
         std::ranges::find(inside_words, c) != std::end(inside_words);
}

// Does the capital sigma at `at` end a word: is there a letter before it and none after it?
bool ends_word(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

bool is_space(char32_t c) {
  if (c <= 0x20) return c == 0x20 || (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

CharClass char_class(char32_t c) {
  const auto kind = category(c);
  if (kind == UTF8PROC_CATEGORY_CN) return later_class(c);
  if (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) return CharClass::letter;
  if (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) return CharClass::number;
  if (kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO) return CharClass::punctuation;
  if (kind >= UTF8PROC_CATEGORY_SM && kind <= UTF8PROC_CATEGORY_SO) return CharClass::symbol;
  return CharClass::other;
}

bool is_currency(char32_t c) { return category(c) == UTF8PROC_CATEGORY_SC; }

std::u32string to_code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](char32_t c, size_t) { out += c; });
  return out;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

std::string to_lower(std::string_view text) {
  constexpr char32_t capital_sigma = 0x3A3, final_sigma = 0x3C2, capital_dotted_i = 0x130, dot_above = 0x307;
  const std::u32string points = to_code_points(text);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i] == capital_sigma && ends_word(points, i)) {
      append_utf8(out, final_sigma);
    } else if (points[i] == capital_dotted_i) {
      append_utf8(out, 'i');
      append_utf8(out, dot_above);
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(points[i]))));
    }
  }
  return out;
}

}  // namespace normlab
