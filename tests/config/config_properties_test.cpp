// Configurations of any values: a TOML file, --set and the file that a run stores say the same.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <optional>

#include "any_text.h"
#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"

namespace normlab {
namespace {

// Mostly valid: values of the kind that the field expects, small ones more often.
std::string any_value(const Field& field) {
  const std::string one_of = "one of ";
  if (field.expected.starts_with(one_of)) {
    std::vector<std::string> names;
    for (const std::string& name : split(field.expected.substr(one_of.size()), ',')) names.push_back(trim(name));
    return *rc::gen::elementOf(names);
  }
  if (field.expected == "text") return any_text();
  if (field.expected == "true or false") return *rc::gen::element<std::string>("true", "false");
  if (field.expected.starts_with("a whole number"))
    return concat(*rc::gen::oneOf(rc::gen::element<int64_t>(1, 2, 4, 8, 16, 64), rc::gen::inRange<int64_t>(-5, 300),
                                  rc::gen::arbitrary<int64_t>()));
  return format_number(
      *rc::gen::oneOf(rc::gen::element(0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 1e-4), rc::gen::arbitrary<double>(),
                      rc::gen::map(rc::gen::inRange(-300, 300), [](int e) { return std::pow(10.0, e); })));
}

struct Assignment {
  std::string key, value;
};
std::vector<Assignment> any_assignments(const FieldList& list, int most) {
  std::vector<Assignment> out;
  for (int i = *rc::gen::inRange(0, most); i > 0; --i) {
    const Field& field = list.fields()[*rc::gen::inRange<size_t>(0, list.fields().size())];
    out.push_back({field.key, any_value(field)});
  }
  return out;
}

TEST(ConfigProperties, AnyFieldsReadBackFromTomlAndSet) {
  EXPECT_TRUE(rc::check([] {
    Config config, from_toml, from_set;
    const FieldList list = fields(config), toml = fields(from_toml), set = fields(from_set);
    for (const auto& [key, value] : any_assignments(list, 30)) {
      try {
        list.at(key, "test").set(value);
      } catch (const UsageError&) {  // out of range: the old value stays
      }
    }
    const std::string text = to_toml(list);
    for (const Setting& setting : parse_toml(text, "test")) apply(toml, setting);
    RC_ASSERT(to_toml(toml) == text);
    for (const Field& field : list.fields()) {
      const std::string value = field.get();
      // On the command line blanks around a value do not belong to it, and brackets make a list.
      if (trim(value) == value && !value.starts_with('['))
        apply(set, parse_setting(concat(field.key, "=", value)));
      else
        set.at(field.key, "test").set(value);
    }
    RC_ASSERT(to_toml(set) == text);
  }));
}

std::optional<Config> resolved(const std::vector<Setting>& settings) {
  try {
    return resolve_config(settings).config;
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

TEST(ConfigProperties, AFileAndTheCommandLineResolveToTheSame) {
  EXPECT_TRUE(rc::check([] {
    Config defaults;
    const FieldList list = fields(defaults);
    std::vector<Setting> given;
    std::string file;
    const auto say = [&](const std::string& key, const std::string& value) {
      for (const Setting& setting : given)
        if (setting.key == key) return;  // a file may say it only once
      if (list.at(key, "test").expected == "text") return;
      given.push_back(parse_setting(concat(key, "=", value)));
      file += concat(key, " = ", toml_value(list.at(key, "test"), value), "\n");
    };
    say("norm.scheme", catalogue()[*rc::gen::inRange<size_t>(0, catalogue().size())].name);
    for (const auto& [key, value] : any_assignments(list, 4)) say(key, value);
    const auto by_set = resolved(given), by_file = resolved(parse_toml(file, "test.toml"));
    RC_CLASSIFY(by_set.has_value(), "valid");
    RC_ASSERT(by_set.has_value() == by_file.has_value());
    if (!by_set) return;
    RC_ASSERT(to_toml(*by_set) == to_toml(*by_file));
    // What a run stores resolves to itself.
    const auto stored = resolved(optional_settings(parse_toml(to_toml(*by_set), "config.toml")));
    RC_ASSERT(stored.has_value());
    RC_ASSERT(to_toml(*stored) == to_toml(*by_set));
    RC_ASSERT(computed_by(*stored) == computed_by(*by_set));
    require_same_run(*stored, *by_set);
  }));
}

}  // namespace
}  // namespace normlab
