#include "normlab/study/run/variants.h"

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"
#include "normlab/study/run/ladder.h"

namespace normlab {
namespace {

std::string without_spaces(const std::string& text) { return replace_all(text, " ", ""); }

// "p = 2.5"; a scheme is called by its name alone.
std::string variant_part(const std::vector<Axis>& axes, const std::string& key, const std::string& value) {
  if (key == "norm.scheme") return value;
  const auto short_name = [](const std::string& name) { return name.substr(name.find('.') + 1); };
  const auto alike =
      std::count_if(axes.begin(), axes.end(), [&](const Axis& a) { return short_name(a.key) == short_name(key); });
  return concat(alike > 1 ? key : short_name(key), " = ", value);
}

// A file name without spaces and what a shell would take for its own.
std::string slug_of(const std::string& label) {
  constexpr size_t longest = 100;
  constexpr std::string_view plain = ".,=+-_";
  std::string slug;
  for (const char c : without_spaces(label)) {
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c & 0x80);
    slug += letter || (plain.find(c) != std::string_view::npos && !(slug.empty() && (c == '.' || c == '-'))) ? c : '_';
  }
  while (slug.size() > 1 && slug.back() == '_') slug.pop_back();
  return slug.substr(0, longest);
}

void check_named_variant(const NamedSettings& named, const std::vector<Axis>& axes) {
  for (const Setting& each : named.settings) {
    if (!varies_between_trials(each.key))
      throw UsageError(each.where,
                       concat(each.key, " must be the same for all variants; '", named.label, "' sets it."));
    if (std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.key == each.key; }))
      throw UsageError(each.where, concat("the variant '", named.label, "' sets ", each.key,
                                          ", of which the study has a list. ", "Leave out either."));
  }
}

}  // namespace

bool varies_between_trials(const std::string& key) {
  if (is_ladder_key(key)) return true;
  Config scratch;
  return fields(scratch).at(key, "study").in_study == InStudy::varies;
}

void require_count(size_t count, const char* of) {
  constexpr size_t most = 100'000;
  if (count > most)
    throw UsageError("study", concat("got ", count, " ", of, ", expected at most ", most, ". Shorten a list."));
}

std::vector<Axis> axes_of(const StudySpec& spec) {
  std::vector<Axis> axes;
  for (const Setting& each : spec.settings) {
    if (!each.is_list || each.key == fold_key || each.key == seed_key) continue;
    if (!varies_between_trials(each.key))
      throw UsageError(each.where, concat(each.key, " must be the same for all trials of a study; got a list."));
    axes.push_back({each.key, each.values, each.where, each.optional});
  }
  for (const Setting& each : spec.ladder)
    if (each.is_list) axes.push_back({each.key, each.values, each.where, each.optional});
  return axes;
}

std::string scheme_label(const StudySpec& spec, const std::string& scheme) {
  NormScheme row = find_scheme(scheme);
  FieldList list;
  list_fields(row, list);
  std::string label = scheme;
  for (const Setting& each : spec.settings) {
    if (each.is_list || !each.key.starts_with("norm.") || each.key == "norm.scheme") continue;
    if (list.at(each.key, each.where).get() != each.values.front())
      label += concat(", ", each.key.substr(each.key.find('.') + 1), " = ", each.values.front());
  }
  return label;
}

std::vector<Variant> variants_of(const StudySpec& spec, const std::vector<Axis>& axes) {
  std::vector<Variant> variants;
  for (const NamedSettings& named : spec.variants) {
    check_named_variant(named, axes);
    variants.push_back({.name = named.label, .label = named.label, .slug = {}, .settings = named.settings});
  }
  if (variants.empty()) variants.emplace_back();
  for (const Axis& axis : axes) {
    require_count(variants.size() * axis.values.size(), "variants");
    std::vector<Variant> extended;
    for (const Variant& variant : variants)
      for (const std::string& value : axis.values) {
        Variant& next = extended.emplace_back(variant);
        const std::string comma = variant.name.empty() ? "" : ", ", name = variant_part(axes, axis.key, value);
        next.name += concat(comma, name);
        next.label += concat(comma, axis.key == "norm.scheme" ? scheme_label(spec, value) : name);
        next.settings.push_back(
            {.key = axis.key, .values = {value}, .where = axis.where, .is_list = false, .optional = axis.optional});
      }
    variants = std::move(extended);
  }
  for (Variant& variant : variants) variant.slug = slug_of(variant.name);
  if (variants.size() < 2)
    throw UsageError("study",
                     "there is nothing to compare. Give a key a list of values, such as norm.p = [2, 3], or "
                     "write two or more [[variant]] tables.");
  return variants;
}

size_t find_variant(const std::vector<Variant>& variants, const std::string& label, const std::string& where) {
  std::vector<std::string> labels;
  for (size_t i = 0; i < variants.size(); ++i) {
    for (const std::string& known : {variants[i].label, variants[i].name})
      if (without_spaces(known) == without_spaces(label)) return i;
    labels.push_back(variants[i].label);
  }
  const auto near = nearest(label, labels);
  throw UsageError(
      where, concat("there is no variant '", label, "'. ",
                    near ? concat("Did you mean '", *near, "'?") : concat("There are: ", join(labels, "; "), ".")));
}

}  // namespace normlab
