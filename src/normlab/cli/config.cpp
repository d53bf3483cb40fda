// normlab config: print, check and explain configurations.
#include "normlab/config/config.h"

#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"

namespace normlab {
namespace {

void explain(const Field& field) {
  print_line(concat(field.key, "\n  ", field.doc, "\n  expected: ", field.expected, "\n  default: ", field.get()));
}

// A table a section; docs/configuration.md is this output.
void print_markdown(const FieldList& list) {
  std::string section;
  for (const Field& field : list.fields()) {
    const size_t dot = field.key.find('.');
    if (field.key.substr(0, dot) != section) {
      section = field.key.substr(0, dot);
      print_line(concat("\n## [", section, "]\n\n| key | default | expected | meaning |\n|---|---|---|---|"));
    }
    print_line(concat("| `", field.key, "` | `", field.get(), "` | ", field.expected, " | ",
                      replace_all(field.doc, "|", "\\|"), " |"));
  }
}

}  // namespace

void add_config(CLI::App& app, Exit&) {
  auto* verb = app.add_subcommand("config", "print, check and explain configurations");
  verb->require_subcommand(1);

  auto options = std::make_shared<ConfigOptions>();
  auto* print = verb->add_subcommand("print", "the complete configuration, as a run would store it");
  options->add_to(*print);
  print->callback([options] {
    const std::string text = to_toml(resolve_config(options->settings()).config);
    print_line(text.substr(0, text.size() - 1));
  });

  auto* check = verb->add_subcommand("check", "is the configuration valid?");
  options->add_to(*check);
  check->callback([options] {
    const LoadedConfig loaded = resolve_config(options->settings());
    for (const std::string& note : loaded.notes) print_line(note);
    print_line("valid");
  });

  auto keys_wanted = std::make_shared<std::vector<std::string>>();
  auto* explain_verb = verb->add_subcommand("explain", "what a key means, its default and its range");
  explain_verb->add_option("key", *keys_wanted)->required()->type_name("KEY");
  explain_verb->callback([keys_wanted] {
    Config config;
    config.norm = find_scheme("none");
    const FieldList list = fields(config);
    for (const std::string& key : *keys_wanted) explain(list.at(key, "config explain"));
  });

  auto markdown = std::make_shared<bool>(false);
  auto* keys = verb->add_subcommand("keys", "every key with its default and meaning");
  keys->add_flag("--markdown", *markdown, "as the tables of docs/configuration.md");
  keys->callback([markdown] {
    Config config;
    config.norm = find_scheme("none");
    const FieldList list = fields(config);
    if (*markdown) return print_markdown(list);
    for (const Field& field : list.fields()) explain(field);
  });
  verb->footer(
      "Examples:\n  normlab config print --config recipes/shakespeare.toml --set norm.scheme=lp\n"
      "  normlab config explain norm.p optim.lr");
}

}  // namespace normlab
