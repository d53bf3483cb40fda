// normlab schemes: the catalogue of normalisations.
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"
#include "normlab/config/kernel_use.h"
#include "normlab/config/parameters.h"
#include "normlab/norm/scheme_json.h"

namespace normlab {
namespace {

struct SchemesOptions {
  std::string name;
  bool json = false;
};

// The model of one layer that a row is shown with: the defaults, and what its authors recommend.
ModelConfig shown_model(const NormScheme& row) {
  ModelConfig config;
  FieldList list;
  list_fields(config, list);
  for (const auto& [key, value] : row.recommended)
    if (key.starts_with("model.")) list.at(key, row.name).set(value);
  config.n_layers = 1;
  resolve_model(config, row);
  return config;
}

// The learnable tensors beside weights and biases.
std::vector<ParameterSpec> shown_parameters(const NormScheme& row) {
  constexpr int vocab_size = 65;
  std::vector<ParameterSpec> list = parameters_of(shown_model(row), row, vocab_size);
  std::erase_if(list, [](const ParameterSpec& each) {
    return each.role != Role::norm_gain && each.role != Role::norm_bias && each.role != Role::qk_gain &&
           each.role != Role::qk_p && each.role != Role::scale;
  });
  return list;
}

std::string shape_text(const ParameterSpec& parameter) {
  std::vector<std::string> extents;
  for (const int64_t extent : parameter.shape) extents.push_back(concat(extent));
  return concat("[", join(extents, ", "), "]");
}

nlohmann::ordered_json to_json(const NormScheme& row) {
  nlohmann::ordered_json out = scheme_json(row);
  out["parameters"] = nlohmann::ordered_json::array();
  for (const ParameterSpec& each : shown_parameters(row)) {
    out["parameters"].push_back({{"name", each.name}, {"shape", shape_text(each)}, {"start", nullptr}});
    if (each.start) out["parameters"].back()["start"] = *each.start;
  }
  for (const KernelUse& use : kernel_use(shown_model(row), row)) out["kernels"][use.part] = use.served_by;
  return out;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max<size_t>(text.size() + 2, width), ' ');
  return text;
}

void print_details(const NormScheme& row) {
  print_line(concat(row.name, ": ", row.title, "\n"));
  for (const std::string& line : split(row.equation, ';')) print_labelled("", trim(line), 2);
  print_line("");
  print_labelled("source:", row.source, 8);
  print_line("\nanswers");
  NormScheme copy = row;
  FieldList list;
  list_fields(copy, list);
  for (const Field& field : list.fields()) {
    print_labelled(concat("  ", field.key, " = ", field.get()), field.doc, 38);
  }
  if (!row.recommended.empty()) print_line("\nrecommended, for keys that are not set");
  for (const auto& [key, value] : row.recommended) print_line(concat("  ", key, " = ", value));
  print_line("");
  print_wrapped(
      "learnable parameters other than weights and biases, in the default model with one layer: shape, initial value");
  const auto parameters = shown_parameters(row);
  for (const ParameterSpec& each : parameters)
    print_line(concat(padded("  " + each.name, 38), padded(shape_text(each), 10),
                      each.start ? significant(*each.start, 4) : "sigma(W)"));
  if (parameters.empty()) print_line("  none");
  print_line("\nkernels");
  for (const KernelUse& use : kernel_use(shown_model(row), row)) print_labelled("  " + use.part, use.served_by, 38);
  print_line(concat("\nuse it: ", own_command({"train", "--set", "norm.scheme=" + row.name})));
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
    print_labelled(row.name, row.title, 16);
    print_labelled("", row.equation, 16);
  }
  if (options.json)
    print_json(all);
  else
    print_line(concat("\ndetails: ", own_command({"schemes", "NAME"})));
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
