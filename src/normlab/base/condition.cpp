#include "normlab/base/condition.h"

#include <algorithm>

#include "normlab/base/text.h"

namespace normlab {
namespace {

// Parts between whole words: "a and b" at " and ".
std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + separator.size();
  }
}

std::string shown(const std::string& value) { return value.empty() ? "empty" : value; }

}  // namespace

Condition::Condition(std::string_view text) {
  for (const std::string& alternative : parts_of(text, " or ")) {
    std::vector<Term>& terms = any_of_.emplace_back();
    for (const std::string& part : parts_of(alternative, " and ")) {
      const size_t place = part.find_first_of("!=>");
      const Relation relation = part.at(place) == '!'   ? Relation::is_not
                                : part.at(place) == '>' ? Relation::above
                                                        : Relation::is;
      const std::string value = part.substr(place + (relation == Relation::is_not ? 2 : 1));
      terms.push_back({part.substr(0, place), relation, split(value, '|')});
    }
  }
}

bool Condition::Term::holds(const ValueOf& value_of) const {
  const std::string value = value_of(key);
  if (relation == Relation::above)
    return parse_number(value).value_or(0.0) > parse_number(values.front()).value_or(0.0);
  const bool listed = std::find(values.begin(), values.end(), value) != values.end();
  return listed == (relation == Relation::is);
}

std::string Condition::Term::words() const {
  if (relation == Relation::above) return concat(key, " is above ", values.front());
  if (relation == Relation::is_not)
    return values.front().empty() ? concat(key, " is set") : concat(key, " is not ", join(values, " or "));
  return values.front().empty() ? concat(key, " is empty") : concat(key, " is ", join(values, " or "));
}

bool Condition::holds(const ValueOf& value_of) const {
  return std::any_of(any_of_.begin(), any_of_.end(), [&](const std::vector<Term>& terms) {
    return std::all_of(terms.begin(), terms.end(), [&](const Term& term) { return term.holds(value_of); });
  });
}

std::string Condition::words() const {
  std::vector<std::string> alternatives;
  for (const std::vector<Term>& terms : any_of_) {
    std::vector<std::string> all;
    for (const Term& term : terms) all.push_back(term.words());
    alternatives.push_back(join(all, " and "));
  }
  return join(alternatives, ", or ");
}

std::string Condition::state(const ValueOf& value_of) const {
  std::vector<std::string> keys, states;
  for (const std::vector<Term>& terms : any_of_)
    for (const Term& term : terms) {
      if (term.holds(value_of) || std::find(keys.begin(), keys.end(), term.key) != keys.end()) continue;
      keys.push_back(term.key);
      states.push_back(concat(term.key, " is ", shown(value_of(term.key))));
    }
  return join(states, ", ");
}

std::vector<std::pair<std::string, std::string>> Condition::values() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::vector<Term>& terms : any_of_)
    for (const Term& term : terms)
      for (const std::string& value : term.values) pairs.emplace_back(term.key, value);
  return pairs;
}

}  // namespace normlab
