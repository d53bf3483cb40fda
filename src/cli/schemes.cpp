// normlab schemes: the catalogue of normalisations.
#include <memory>

#include "base/text.h"
#include "cli/verbs.h"
#include "norm/scheme.h"

namespace normlab {
namespace {

struct SchemesOptions {
  std::string name;
  bool json = false;
};

nlohmann::ordered_json to_json(const NormScheme& row) {
  nlohmann::ordered_json out = {
      {"name", row.name}, {"title", row.title}, {"equation", row.equation}, {"source", row.source}};
  NormScheme copy = row;
  FieldList list;
  list_fields(copy, list);
  for (const Field& field : list.fields()) out["fields"][field.key] = field.get();
  return out;
}

void print_details(const NormScheme& row) {
  print_line(str(row.name, ": ", row.title, "\n\n  ", row.equation, "\n\nsource: ", row.source, "\n"));
  NormScheme copy = row;
  FieldList list;
  list_fields(copy, list);
  for (const Field& field : list.fields()) {
    std::string line = str("  ", field.key, " = ", field.get());
    line.resize(std::max<size_t>(line.size() + 2, 38), ' ');
    print_line(line + field.doc);
  }
  print_line(str("\nuse it: normlab train --set norm.scheme=", row.name));
}

Exit show_schemes(const SchemesOptions& options) {
  if (!options.name.empty()) {
    const NormScheme& row = find_scheme(options.name);
    options.json ? print_json(to_json(row)) : print_details(row);
    return Exit::done;
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const NormScheme& row : catalogue()) {
    if (options.json) {
      all.push_back(to_json(row));
      continue;
    }
    std::string name = row.name;
    name.resize(std::max<size_t>(name.size() + 2, 12), ' ');
    print_line(str(name, row.title, "\n", std::string(12, ' '), row.equation));
  }
  if (options.json)
    print_json(all);
  else
    print_line("\ndetails: normlab schemes NAME");
  return Exit::done;
}

}  // namespace

void add_schemes(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("schemes", "the normalisation schemes, with their equations and sources");
  auto options = std::make_shared<SchemesOptions>();
  verb->add_option("name", options->name, "show one scheme in full")->type_name("NAME");
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->footer("Example:\n  normlab schemes lp");
  verb->callback([options, &exit] { exit = show_schemes(*options); });
}

}  // namespace normlab
