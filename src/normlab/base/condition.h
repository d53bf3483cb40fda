// Conditions over the configuration, written as text: "norm.gain!=none and norm.learn_gain=true or norm.residual!=add".
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

class Condition {
 public:
  // Terms are key=value, key=value|value, key!=value and key>number, joined with "and", then with "or". An empty value
  // is that of a text that is not set.
  explicit Condition(std::string_view text);

  using ValueOf = std::function<std::string(const std::string& key)>;
  bool holds(const ValueOf& value_of) const;
  std::string words() const;                         // "norm.gain is not none and norm.learn_gain = true or ..."
  std::string state(const ValueOf& value_of) const;  // "norm.gain is none": the keys whose terms do not hold
  std::vector<std::pair<std::string, std::string>> values() const;  // every key with each value it is compared with

 private:
  enum class Relation { is, is_not, above };
  struct Term {
    std::string key;
    Relation relation;
    std::vector<std::string> values;
    bool holds(const ValueOf& value_of) const;
    std::string words() const;
  };
  std::vector<std::vector<Term>> any_of_;  // all terms of one of them
};

}  // namespace normlab
