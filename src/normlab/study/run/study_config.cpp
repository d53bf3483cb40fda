#include "normlab/study/run/study_config.h"

#include <algorithm>
#include <map>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"

namespace normlab {
namespace {

constexpr std::string_view variant_prefix = "variant.";

// "recipes/x.toml:12" -> "recipes/x.toml"
std::string file_of(const Setting& setting) { return setting.where.substr(0, setting.where.rfind(':')); }

// The values as `normlab config print` writes them, so that 2.0 and 2 are the same.
Setting normalised(const FieldList& list, Setting setting) {
  const Field& field = list.at(setting.key, setting.where);
  if (setting.values.empty())
    throw UsageError(setting.where, concat("the list of ", setting.key, " is empty; expected at least one value."));
  for (std::string& value : setting.values) {
    field.set(value);
    value = field.get();
  }
  for (auto value = setting.values.begin(); value != setting.values.end(); ++value)
    if (std::find(setting.values.begin(), value, *value) != value)
      throw UsageError(setting.where, concat("the list of ", setting.key, " has ", *value, " twice."));
  return setting;
}

// Where a key of a [[variant]] is declared: a rung of a ladder may be one.
struct VariantFields {
  const FieldList& run;
  const FieldList& ladder;
  const FieldList& of(const std::string& key) const { return is_ladder_key(key) ? ladder : run; }
};

// "variant.3.norm.p" or "variant.3.label"
void add_to_variant(std::vector<NamedSettings>& variants, const VariantFields& lists, const Setting& setting) {
  const std::string rest = setting.key.substr(variant_prefix.size());
  const auto index = parse_integer(rest.substr(0, rest.find('.')));
  constexpr long long most = 100'000;
  if (!index || *index < 0 || *index >= most || rest.find('.') == std::string::npos)
    throw UsageError(setting.where, "write variants as [[variant]] tables, each with a label and its settings.");
  variants.resize(std::max(variants.size(), static_cast<size_t>(*index) + 1));
  NamedSettings& variant = variants[static_cast<size_t>(*index)];
  Setting inner = setting;
  inner.key = rest.substr(rest.find('.') + 1);
  if (inner.is_list) throw UsageError(inner.where, concat("a variant sets one value of ", inner.key, ", not a list."));
  if (inner.key == "label")
    variant.label = trim(inner.values.front());
  else
    variant.settings.push_back(normalised(lists.of(inner.key), inner));
}

void check_labels(const std::vector<NamedSettings>& variants) {
  for (size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].label.empty()) throw UsageError("[[variant]]", concat("number ", i + 1, " has no label."));
    for (size_t j = 0; j < i; ++j)
      if (variants[i].label == variants[j].label)
        throw UsageError("[[variant]]", concat("two variants have the label '", variants[i].label, "'."));
  }
}

std::string toml_of(const FieldList& list, const Setting& setting, std::string_view key) {
  const Field& field = list.at(setting.key, setting.where);
  std::vector<std::string> values;
  for (const std::string& value : setting.values) values.push_back(toml_value(field, value));
  return concat(key, " = ", setting.is_list ? concat("[", join(values, ", "), "]") : values.front(), "\n");
}

}  // namespace

void list_fields(StudyConfig& c, FieldList& list) {
  list.section("study");
  list.text("title", c.title, "title of the report; empty: the name of the folder");
  list.text("baseline", c.baseline, "label of the variant that the others are compared with; empty: the first");
  list.real("target_loss", c.target_loss, {.min = 0.0},
            "convergence speed is measured to this validation loss; 0 = the baseline's final loss, per fold");
}

StudySpec read_study(const std::vector<Setting>& settings) {
  StudySpec spec;
  FieldList study_list;
  list_fields(spec.study, study_list);
  LadderConfig rules;
  FieldList ladder_list;
  list_fields(rules, ladder_list);
  Config scratch;
  const FieldList list = fields(scratch);

  std::map<std::string, Setting> configured;
  std::vector<Setting> tune;
  std::string variants_file;
  for (const Setting& setting : settings) {
    require_utf8(setting);
    if (setting.key == "normlab") {
      spec.version = setting.values.empty() ? "" : setting.values.front();
    } else if (setting.key.starts_with("study.tune.")) {
      tune.push_back(setting);
    } else if (setting.key.starts_with("study.")) {
      apply(study_list, setting);
    } else if (is_ladder_key(setting.key)) {
      configured[setting.key] = normalised(ladder_list, setting);
    } else if (setting.key.starts_with(variant_prefix)) {
      if (file_of(setting) != variants_file) spec.variants.clear();  // a later file's replace an earlier one's
      variants_file = file_of(setting);
      add_to_variant(spec.variants, {list, ladder_list}, setting);
    } else {
      configured[setting.key] = normalised(list, setting);
    }
  }
  check_labels(spec.variants);
  const auto in_order = [&](const FieldList& order, std::vector<Setting>& out) {
    for (const Field& field : order.fields())
      if (const auto found = configured.find(field.key); found != configured.end()) out.push_back(found->second);
  };
  in_order(list, spec.settings);
  in_order(ladder_list, spec.ladder);
  check_ladder(spec.ladder);
  spec.tune = read_tune(tune, list);
  return spec;
}

std::string to_toml(const StudySpec& spec) {
  StudyConfig study = spec.study;
  FieldList study_list;
  list_fields(study, study_list);
  Config scratch;
  const FieldList list = fields(scratch);

  std::string out =
      concat("# What `normlab compare` runs here; `normlab compare --out` with this folder resumes it.\nnormlab = ",
             toml_text(spec.version), "\n\n", to_toml(study_list), to_toml(spec.tune, list));
  LadderConfig rules;
  FieldList ladder_list;
  list_fields(rules, ladder_list);
  if (!spec.ladder.empty()) out += "\n[ladder]\n";
  for (const Setting& setting : spec.ladder)
    out += toml_of(ladder_list, setting, setting.key.substr(setting.key.find('.') + 1));
  std::string section;
  for (const Setting& setting : spec.settings) {
    const size_t dot = setting.key.find('.');
    if (setting.key.substr(0, dot) != section) {
      section = setting.key.substr(0, dot);
      out += concat("\n[", section, "]\n");
    }
    out += toml_of(list, setting, setting.key.substr(dot + 1));
  }
  for (const NamedSettings& variant : spec.variants) {
    out += concat("\n[[variant]]\nlabel = ", toml_text(variant.label), "\n");
    for (const Setting& setting : variant.settings)
      out += toml_of(VariantFields{list, ladder_list}.of(setting.key), setting, setting.key);
  }
  return out;
}

}  // namespace normlab
