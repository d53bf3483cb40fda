#include "normlab/cli/completion.h"

#include "normlab/base/text.h"
#include "normlab/config/config.h"

namespace normlab {

std::vector<NamedVerb> leaves(const VerbInfo& program) {
  std::vector<NamedVerb> list;
  for (const VerbInfo& verb : program.verbs) {
    if (verb.verbs.empty()) list.push_back({verb.name, &verb});
    for (const VerbInfo& inner : verb.verbs) list.push_back({concat(verb.name, " ", inner.name), &inner});
  }
  return list;
}

std::string names_of(const std::vector<VerbInfo>& verbs) {
  std::vector<std::string> names;
  for (const VerbInfo& verb : verbs) names.push_back(verb.name);
  return join(names, " ");
}

ValueKind kind_of(const OptionInfo& option, const std::string& path) {
  if (option.value.empty()) return ValueKind::flag;
  if (option.value == "KEY=VALUE") return ValueKind::settings;
  if (option.value == "KEY") return ValueKind::keys;
  if (option.value.starts_with("SCHEME") || (path == "schemes" && !option.argument.empty())) return ValueKind::schemes;
  for (const std::string& name : option.names)
    if (name == "--config" && option.value == "FILE") return ValueKind::recipes;
  for (const char* each : {"FILE", "DIR", "STUDY", "RUN"})
    if (option.value.find(each) != std::string::npos) return ValueKind::files;
  return ValueKind::none;
}

std::string shell_quoted(const std::string& text) { return concat("'", replace_all(text, "'", "'\\''"), "'"); }

Vocabulary vocabulary() {
  Vocabulary words;
  Config config;
  const FieldList list = fields(config);
  for (const Field& field : list.fields()) {
    words.keys.push_back(field.key);
    constexpr std::string_view one_of = "one of ";
    if (field.key != "norm.scheme" && field.expected.starts_with(one_of))
      words.choices.push_back({field.key, split(replace_all(field.expected.substr(one_of.size()), ", ", ","), ',')});
    else if (field.expected == "true or false")
      words.choices.push_back({field.key, {"true", "false"}});
  }
  for (const NormScheme& row : catalogue()) words.schemes.push_back(row.name);
  words.choices.push_back({"norm.scheme", words.schemes});
  return words;
}

}  // namespace normlab
