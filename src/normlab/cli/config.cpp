// normlab config: print, check and explain configurations.
#include "normlab/config/config.h"

#include <algorithm>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"
#include "normlab/record/quantities.h"

namespace normlab {
namespace {

// The values that rows of the catalogue have or recommend, where they differ from the default: "3 in lp".
std::vector<std::string> defaults_of_schemes(const Field& field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // a value and its schemes
  for (const NormScheme& row : catalogue()) {
    Config config;
    config.norm = row;
    const FieldList list = fields(config);
    for (const auto& [key, value] : row.recommended) list.at(key, row.name).set(value);
    const std::string value = list.value_of(field.key);
    if (value == field.get() || field.key == "norm.scheme") continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == value; });
    if (group == groups.end()) group = groups.insert(groups.end(), {value, {}});
    group->second.push_back(row.name);
  }
  std::vector<std::string> texts;
  for (const auto& [value, schemes] : groups) texts.push_back(concat(value, " in ", join(schemes, ", ")));
  return texts;
}

std::string read_text(const Field& field) {
  if (field.read_when.empty()) return "";
  std::vector<std::string> conditions;
  for (const Condition& condition : field.read_when) conditions.push_back(condition.words());
  return concat("Read when ", join(conditions, "; and "), ".");
}

// What its attributes say, where they are not those of most keys.
std::vector<std::string> attributes_of(const Field& field) {
  std::vector<std::string> lines;
  if (const std::string text = read_text(field); !text.empty()) lines.push_back(text);
  if (field.effect == Effect::execution) lines.emplace_back("Changes speed, and results by rounding at most.");
  if (field.effect == Effect::record || field.effect == Effect::storage) {
    lines.emplace_back("Does not change results.");
    if (field.trains_when) lines.back() = concat("Changes results only when ", field.trains_when->words(), ".");
  }
  if (field.in_study == InStudy::shared) lines.emplace_back("The same for all trials of a study.");
  if (field.in_study == InStudy::repeats) lines.emplace_back("A list of them repeats each variant of a study.");
  if (field.on_resume) lines.emplace_back("May change on resume.");
  return lines;
}

void print_indented(const std::string& text) { print_labelled("", text, 2); }

void explain(const Field& field) {
  std::vector<std::string> defaults = defaults_of_schemes(field);
  defaults.insert(defaults.begin(), field.get());
  print_line(field.key);
  for (const std::string& line :
       {field.doc, concat("expected: ", field.expected), concat("default: ", join(defaults, "; "))})
    print_indented(line);
  for (const auto& [word, meaning] : field.meanings) print_indented(concat(word, ": ", meaning));
  for (const std::string& line : attributes_of(field)) print_indented(line);
  if (field.read_when.empty()) return;
  Config config;
  const std::vector<std::string> schemes = schemes_that_read(config, field.key);
  if (!schemes.empty() && schemes.size() < catalogue().size())
    print_indented(concat("Schemes that read it: ", join(schemes, ", "), "."));
}

// What the probes measure: all of it for `metrics`, or one quantity such as attn/entropy; false where there is none.
bool explain_quantity(const std::string& word) {
  constexpr size_t indent = 26;
  const bool all = word == "metrics";
  if (all) print_wrapped(split(definitions(), '\n').front());
  bool found = all;
  for (const QuantityRow& row : quantities()) {
    const std::string name = concat(row.group, "/", row.key);
    if (all) print_labelled(concat("  ", name), row.definition, indent);
    if (name != word) continue;
    found = true;
    print_line(concat(name, ", measured with probe.every"));
    print_indented(row.definition);
  }
  return found;
}

// A word among the values of some key, such as `matched`; false where there is none.
bool explain_word(const FieldList& list, const std::string& word) {
  bool found = false;
  for (const Field& field : list.fields())
    for (const auto& [known, meaning] : field.meanings)
      if (known == word) {
        found = true;
        print_line(concat(word, ", a value of ", field.key));
        print_indented(meaning);
      }
  return found;
}

// A table per section; docs/configuration.md is this output.
void print_markdown(const FieldList& list) {
  std::string section;
  for (const Field& field : list.fields()) {
    const size_t dot = field.key.find('.');
    if (field.key.substr(0, dot) != section) {
      section = field.key.substr(0, dot);
      print_line(concat("\n## [", section, "]\n\n| key | default | expected | meaning |\n|---|---|---|---|"));
    }
    std::string meaning = field.doc;
    for (const auto& [word, text] : field.meanings) meaning += concat("; `", word, "`: ", text);
    meaning += '.';
    for (const std::string& line : attributes_of(field)) meaning += concat(" ", line);
    std::string defaults = concat("`", field.get(), "`");
    for (const std::string& each : defaults_of_schemes(field)) defaults += concat("; ", each);
    print_line(concat("| `", field.key, "` | ", defaults, " | ", field.expected, " | ",
                      replace_all(meaning, "|", "\\|"), " |"));
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
  auto* explain_verb = verb->add_subcommand(
      "explain", "what a key, a word such as matched, or a metric means; range, defaults of schemes");
  explain_verb->add_option("key", *keys_wanted)->required()->type_name("KEY");
  explain_verb->callback([keys_wanted] {
    Config config;
    config.norm = find_scheme("none");
    const FieldList list = fields(config);
    for (const std::string& key : *keys_wanted)
      if (!explain_word(list, key) && !explain_quantity(key)) explain(list.at(key, "config explain"));
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
      "  normlab config explain norm.p optim.lr matched\n"
      "  normlab config explain metrics");
}

}  // namespace normlab
