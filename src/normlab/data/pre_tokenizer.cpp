#include "normlab/data/pre_tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

namespace {

struct MatchedRange {
  size_t begin = 0, end = 0;
  bool match = false;
};

// Calls visit(MatchedRange) for the matches and what stands between them, in order.
template <class Visit>
void for_each_range(const TextPattern& pattern, std::string_view text, Visit visit) {
  size_t done = 0;
  while (done < text.size()) {
    const auto [begin, end] = pattern.find(text, done);
    if (begin == text.npos) break;
    if (done < begin) visit(MatchedRange{done, begin, false});
    visit(MatchedRange{begin, end, true});
    done = end;
  }
  if (done < text.size()) visit(MatchedRange{done, text.size(), false});
}

// Whether a piece ends between the two texts, and the pieces before do not depend on what follows: from wherever in
// `left` a search for the pattern begins, it finds the same with `right` and without, and nothing that reaches across.
// A search depends on the text after its beginning only, so what stands before `left` does not matter.
bool pieces_end(const TextPattern& pattern, std::string_view left, std::string_view right) {
  const std::string both = concat(left, right);
  for (size_t from = 0; from < left.size(); ++from) {
    if ((static_cast<uint8_t>(left[from]) & 0xC0) == 0x80) continue;  // within a character
    const auto with = pattern.find(both, from), without = pattern.find(left, from);
    const bool gap_ends_here = with.first == left.size() && without.first == left.npos;
    if (!gap_ends_here && (with != without || with.second > left.size())) return false;
  }
  return true;
}

}  // namespace

PreTokenizer::PreTokenizer(const nlohmann::json& json, const std::string& where) {
  if (!json.is_null()) add(json, where);
}

void PreTokenizer::add(const nlohmann::json& json, const std::string& where) {
  const std::string type = json.at("type");
  if (byte_level_) throw DataError(where, concat("the pre-tokeniser ", type, " after ByteLevel is not supported."));
  if (type == "Sequence") {
    for (const nlohmann::json& part : json.at("pretokenizers")) add(part, where);
  } else if (type == "ByteLevel") {
    byte_level_ = true;
    Step step{.prefix = json.at("add_prefix_space") ? Prefix::always : Prefix::never};
    if (json.value("use_regex", true)) step.pattern = TextPattern(gpt2_pattern, where);
    steps_.push_back(std::move(step));
  } else if (type == "Metaspace") {
    add_metaspace(json, where);
  } else if (type == "Digits") {
    const Behaviour behaviour = json.at("individual_digits") ? Behaviour::isolated : Behaviour::contiguous;
    steps_.push_back({.pattern = TextPattern(R"(\p{N})", where), .behaviour = behaviour});
  } else if (type == "Split") {
    constexpr std::array names = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const std::string behaviour = json.at("behavior");
    size_t i = 0;
    while (i < names.size() && behaviour != names[i]) ++i;
    if (i == names.size()) throw DataError(where, concat("the behaviour ", behaviour, " of Split is not supported."));
    steps_.push_back({.pattern = pattern_from_json(json.at("pattern"), where),
                      .behaviour = static_cast<Behaviour>(i),
                      .invert = json.value("invert", false)});
  } else {
    throw DataError(where, concat("the pre-tokeniser ", type,
                                  " is not supported; expected ByteLevel, Split, Digits, Metaspace or Sequence."));
  }
}

void PreTokenizer::add_metaspace(const nlohmann::json& json, const std::string& where) {
  const std::string scheme = json.value("prepend_scheme", json.value("add_prefix_space", true) ? "always" : "never");
  Step step{.behaviour = Behaviour::merged_with_next, .space = json.at("replacement")};
  if (scheme != "never" && scheme != "first" && scheme != "always")
    throw DataError(where, concat("the prepend_scheme ", scheme, " of Metaspace is not supported."));
  step.prefix = scheme == "never" ? Prefix::never : scheme == "first" ? Prefix::first : Prefix::always;
  if (json.value("split", true)) step.pattern = TextPattern::literal(step.space, where);
  steps_.push_back(std::move(step));
}

PreTokenizer::Cut PreTokenizer::cut_between(std::string_view left, std::string_view right) const {
  bool as_it_stands = true;  // the step sees the text itself
  for (const Step& step : steps_) {
    as_it_stands = as_it_stands && step.space == " " && step.prefix != Prefix::always;
    if (!step.pattern) continue;
    const std::string& literal = step.pattern->literal_text();
    if (!literal.empty() && literal.find('\n') == literal.npos) {
      as_it_stands = false;
      continue;
    }
    const bool splits = step.behaviour == Behaviour::isolated || step.behaviour == Behaviour::removed;
    return as_it_stands && splits && literal.empty() && pieces_end(*step.pattern, left, right) ? Cut::between_pieces
                                                                                               : Cut::unknown;
  }
  return Cut::within_piece;
}

void PreTokenizer::run(size_t at, std::string_view text, Place place, const Emit& emit) const {
  if (at == steps_.size()) return emit(text);
  const Step& step = steps_[at];
  std::string changed;  // where the step changes the text
  if (step.space != " ") {
    changed = replace_all(std::string(text), " ", step.space);
    text = changed;
  }
  const bool wanted = place != Place::continued &&
                      (step.prefix == Prefix::always || (step.prefix == Prefix::first && place == Place::first));
  if (wanted && !text.starts_with(step.space)) {
    changed = step.space + std::string(text);
    text = changed;
  }
  if (!step.pattern) return run(at + 1, text, place, emit);

  const auto pass_on = [&](size_t begin, size_t end) {
    if (begin < end) run(at + 1, text.substr(begin, end - begin), begin == 0 ? place : Place::later, emit);
  };
  MatchedRange held;  // not passed on yet
  for_each_range(*step.pattern, text, [&](MatchedRange range) {
    range.match = range.match != step.invert;
    switch (step.behaviour) {
      case Behaviour::isolated:
        return pass_on(range.begin, range.end);
      case Behaviour::removed:
        if (!range.match) pass_on(range.begin, range.end);
        return;
      case Behaviour::contiguous:
      case Behaviour::merged_with_previous:
      case Behaviour::merged_with_next:
        break;
    }
    const bool joined = step.behaviour == Behaviour::contiguous             ? range.match == held.match
                        : step.behaviour == Behaviour::merged_with_previous ? range.match && !held.match
                                                                            : !range.match && held.match;
    if (!joined) pass_on(held.begin, held.end);
    held = {joined ? held.begin : range.begin, range.end, range.match};
  });
  pass_on(held.begin, held.end);
}

}  // namespace normlab
