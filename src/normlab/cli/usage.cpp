#include "normlab/cli/usage.h"

#include <algorithm>

#include "normlab/base/suggest.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"

namespace normlab {
namespace {

constexpr const char* cpu_only = "this version of normlab runs on the CPU only; leave the option out";

const CLI::App& deepest_verb(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

// "normlab config print"
std::string path_of(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb.get_name() : concat(path_of(*verb.get_parent()), " ", verb.get_name());
}

std::string name_of_option(const std::string& word) { return word.substr(0, word.find('=')); }

// What was given to an option that does not exist.
std::string value_given(const std::string& word, const std::vector<std::string>& words) {
  if (const size_t equals = word.find('='); equals != std::string::npos) return word.substr(equals + 1);
  const auto at = std::find(words.begin(), words.end(), word);
  const bool followed = at != words.end() && at + 1 != words.end() && !(at + 1)->starts_with('-');
  return followed ? *(at + 1) : "VALUE";
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> config_keys() {
  Config config;
  std::vector<std::string> keys;
  const FieldList list = fields(config);
  for (const Field& field : list.fields()) keys.push_back(field.key);
  return keys;
}

// A key that was written as an option, an option that was misspelt, or nothing.
std::string hint_of(const std::string& option, const CLI::App& verb, const std::vector<std::string>& words) {
  const std::string name = name_of_option(option);
  const std::vector<std::string> options = option_names(verb), keys = config_keys();
  const bool takes_keys = std::find(options.begin(), options.end(), "--set") != options.end();
  const auto as_key = [&](const std::string& key) {
    return concat(" It is a key: --set ", key, "=", value_given(option, words), ".");
  };
  if (const auto same = alias_of(name, options)) return concat(" Did you mean ", *same, "?");
  if (const auto key = takes_keys ? alias_of(name, keys) : std::nullopt) return as_key(*key);
  if (const auto near = suggest(name, options)) return concat(" Did you mean ", *near, "?");
  if (const auto key = takes_keys ? suggest(name, keys) : std::nullopt) return as_key(*key);
  return "";
}

bool names_a_device(const std::string& word) {
  for (const char* name : {"--device", "--gpu", "--gpus", "--cuda"})
    if (name_of_option(word) == name) return true;
  return false;
}

std::string unexpected(const CLI::App& verb, const std::vector<std::string>& words) {
  const std::vector<std::string> extras = verb.remaining();
  const auto option =
      std::find_if(extras.begin(), extras.end(), [](const auto& each) { return each.starts_with('-'); });
  if (option == extras.end())
    return concat("'", extras.front(), "' was not expected.",
                  extras.front().find('=') != std::string::npos ? " Settings follow --set." : "");
  if (names_a_device(*option)) return concat(name_of_option(*option), ": ", cpu_only, ".");
  return concat("there is no option ", name_of_option(*option), ".", hint_of(*option, verb, words));
}

}  // namespace

std::string explain(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& verb = deepest_verb(app);
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !verb.remaining().empty();
  return concat(extra ? unexpected(verb, words) : concat(error.what(), "."), " See `", path_of(verb), " --help`.");
}

std::string unknown_verb(const std::string& name, const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    verbs.push_back(verb->get_name());
  const auto near = suggest(name, verbs);
  return concat("there is no verb '", name, "'. ", near ? concat("Did you mean `normlab ", *near, "`? ") : "",
                "`normlab --help` lists them all.");
}

CLI::Validator whole_number(long long least, long long most) {
  return {[least, most](std::string& text) -> std::string {
            const auto value = parse_integer(text);
            if (value && *value >= least && (most < 0 || *value <= most)) return "";
            return concat("got '", text, "', expected a whole number from ", least,
                          most < 0 ? "" : concat(" to ", most));
          },
          ""};
}

CLI::Validator number_between(double least, double most) {
  return {[least, most](std::string& text) -> std::string {
            const auto value = parse_number(text);
            if (value && *value >= least && *value <= most) return "";
            return concat("got '", text, "', expected a number from ", least, " to ", most);
          },
          ""};
}

CLI::Validator number_above_zero() {
  return {[](std::string& text) -> std::string {
            const auto value = parse_number(text);
            return value && *value > 0 ? "" : concat("got '", text, "', expected a number above 0");
          },
          ""};
}

}  // namespace normlab
