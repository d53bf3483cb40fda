#include "normlab/cli/verb_info.h"

#include "normlab/base/text.h"

namespace normlab {
namespace {

// CLI11's own names of types say what a compiler calls them.
std::string value_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return "";
  const std::string whole = option.get_type_name(), name = whole.substr(0, whole.find(':'));  // without its choices
  return name == "INT" || name == "UINT" ? "N" : name == "FLOAT" ? "X" : name;
}

OptionInfo describe(const CLI::Option& option) {
  OptionInfo info{.names = {},
                  .argument = option.get_positional() ? option.get_name(/*positional=*/true) : "",
                  .value = value_of(option),
                  .many = option.get_items_expected_max() > 1,
                  .required = option.get_required(),
                  .group = option.get_group(),
                  .help = option.get_description()};
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  return info;
}

// A line that does not end a sentence continues in the next one; lines that begin with two spaces stand alone.
std::string whole_lines(const std::string& footer) {
  std::string out;
  for (const std::string& line : split(footer, '\n')) {
    const bool continued = !out.empty() && !out.ends_with('\n') && !line.starts_with("  ");
    const bool ends = line.ends_with('.') || line.ends_with(':') || line.starts_with("  ");
    out += concat(out.empty() || out.ends_with('\n') ? "" : continued ? " " : "\n", line, ends ? "\n" : "");
  }
  return out;
}

}  // namespace

VerbInfo describe(const CLI::App& app) {
  VerbInfo info{.name = app.get_name(),
                .description = app.get_description(),
                .group = app.get_group(),
                .footer = whole_lines(app.get_footer()),
                .options = {},
                .verbs = {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) info.options.push_back(describe(*option));
  const auto shown = [](const CLI::App* verb) { return !verb->get_group().empty(); };
  for (const CLI::App* verb : app.get_subcommands(shown)) info.verbs.push_back(describe(*verb));
  return info;
}

nlohmann::json to_json(const VerbInfo& verb) {
  nlohmann::json out = {
      {"name", verb.name},     {"description", verb.description},    {"group", verb.group},
      {"footer", verb.footer}, {"options", nlohmann::json::array()}, {"verbs", nlohmann::json::array()}};
  for (const OptionInfo& option : verb.options)
    out["options"].push_back({{"names", option.names},
                              {"argument", option.argument},
                              {"value", option.value},
                              {"many", option.many},
                              {"required", option.required},
                              {"group", option.group},
                              {"help", option.help}});
  for (const VerbInfo& inner : verb.verbs) out["verbs"].push_back(to_json(inner));
  return out;
}

VerbInfo verb_info_of(const nlohmann::json& json) {
  VerbInfo verb{.name = json.at("name"),
                .description = json.at("description"),
                .group = json.at("group"),
                .footer = json.at("footer"),
                .options = {},
                .verbs = {}};
  for (const nlohmann::json& option : json.at("options"))
    verb.options.push_back({.names = option.at("names").get<std::vector<std::string>>(),
                            .argument = option.at("argument"),
                            .value = option.at("value"),
                            .many = option.at("many"),
                            .required = option.at("required"),
                            .group = option.at("group"),
                            .help = option.at("help")});
  for (const nlohmann::json& inner : json.at("verbs")) verb.verbs.push_back(verb_info_of(inner));
  return verb;
}

}  // namespace normlab
