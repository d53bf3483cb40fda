#include "normlab/data/subword_normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

struct CodePoints {
  char32_t first, last;
};
// Characters with a decomposition that are newer than the tables of the tokenizers package (Unicode 12): it leaves
// them as they are.
constexpr CodePoints left_alone[] = {{0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x10785},
                                     {0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x11938, 0x11938}, {0x1E030, 0x1E06D},
                                     {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

bool is_left_alone(char32_t c) {
  return std::any_of(std::begin(left_alone), std::end(left_alone),
                     [&](const CodePoints& range) { return c >= range.first && c <= range.last; });
}

std::string normal_form(std::string_view text, int options) {
  utf8proc_uint8_t* out = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &out, static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  if (size < 0) throw DataError("text", concat("cannot be normalised: ", utf8proc_errmsg(size), "."));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, &std::free);
  return {reinterpret_cast<const char*>(out), static_cast<size_t>(size)};
}

std::string unicode_form(std::string_view text, int options) {
  std::string out;
  size_t done = 0;
  for_each_code_point(text, [&](char32_t c, size_t offset) {
    if (!is_left_alone(c)) return;
    out += normal_form(text.substr(done, offset - done), options);
    append_utf8(out, c);
    done = offset + static_cast<size_t>(decode_utf8(text, offset).length);
  });
  return out + normal_form(text.substr(done), options);
}

std::string with_replacements(const std::string& text, const TextPattern& pattern, const std::string& content) {
  std::string out;
  size_t done = 0;
  while (true) {
    const auto [begin, end] = pattern.find(text, done);
    if (begin == std::string::npos) break;
    out.append(text, done, begin - done);
    out += content;
    done = end;
  }
  return out.append(text, done);
}

}  // namespace

SubwordNormalizer::SubwordNormalizer(const nlohmann::json& json, const std::string& where) {
  if (!json.is_null()) add(json, where);
}

void SubwordNormalizer::add(const nlohmann::json& json, const std::string& where) {
  const std::string type = json.at("type");
  if (type == "Sequence") {
    for (const nlohmann::json& part : json.at("normalizers")) add(part, where);
  } else if (type == "NFC") {
    steps_.push_back({.kind = Kind::nfc});
  } else if (type == "NFD") {
    steps_.push_back({.kind = Kind::nfd});
  } else if (type == "NFKC") {
    steps_.push_back({.kind = Kind::nfkc});
  } else if (type == "NFKD") {
    steps_.push_back({.kind = Kind::nfkd});
  } else if (type == "Prepend") {
    steps_.push_back({.kind = Kind::prepend, .content = json.at("prepend")});
  } else if (type == "Replace") {
    steps_.push_back({.kind = Kind::replace,
                      .content = json.at("content"),
                      .pattern = pattern_from_json(json.at("pattern"), where)});
  } else {
    throw DataError(where, concat("the normaliser ", type,
                                  " is not supported; expected NFC, NFD, NFKC, NFKD, Prepend, Replace or Sequence."));
  }
}

bool SubwordNormalizer::works_line_by_line() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const Step& step) {
    return !step.pattern ||
           (!step.pattern->literal_text().empty() && step.pattern->literal_text().find('\n') == std::string::npos);
  });
}

std::string SubwordNormalizer::normalize(std::string text, bool continues) const {
  for (const Step& step : steps_) switch (step.kind) {
      case Kind::nfc:
        text = unicode_form(text, UTF8PROC_COMPOSE);
        break;
      case Kind::nfd:
        text = unicode_form(text, UTF8PROC_DECOMPOSE);
        break;
      case Kind::nfkc:
        text = unicode_form(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
        break;
      case Kind::nfkd:
        text = unicode_form(text, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
        break;
      case Kind::prepend:
        if (!text.empty() && !continues) text.insert(0, step.content);
        break;
      case Kind::replace:
        text = with_replacements(text, *step.pattern, step.content);
        break;
    }
  return text;
}

}  // namespace normlab
