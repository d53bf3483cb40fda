#include "normlab/base/fields.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/suggest.h"
#include "normlab/base/text.h"
#include "normlab/base/toml_bounds.h"

namespace normlab {
namespace {

std::string describe(const char* kind, Range range) {
  const bool low = range.min > -std::numeric_limits<double>::infinity();
  const bool high = range.max < std::numeric_limits<double>::infinity();
  std::string out = kind;
  if (low) out += concat(range.open_min ? " above " : " from ", range.min);
  if (high) out += concat(low ? " to " : " up to ", range.max);
  if (range.infinite) out += ", inf included";
  return out;
}

bool inside(double value, Range range) {
  if (std::isinf(value) && !range.infinite) return false;
  return (range.open_min ? value > range.min : value >= range.min) && value <= range.max;
}

[[noreturn]] void reject(const Field& field, const std::string& got) {
  throw UsageError(field.key, concat("got '", got, "', expected ", field.expected, "."));
}

std::string value_text(const toml::node& node, const std::string& where) {
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (auto whole = node.value_exact<int64_t>()) return concat(*whole);
  if (auto real = node.value_exact<double>()) return format_number(*real);
  throw UsageError(where, "a value must be text, a number, true or false; dates and nested lists are not used here.");
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& name,
             std::vector<Setting>& settings) {
  for (const auto& [key, node] : table) {
    const std::string full = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, full + ".", name, settings);
      continue;
    }
    if (node.is_array_of_tables()) {
      size_t index = 0;
      for (const auto& item : *node.as_array()) {
        if (item.as_table()->empty())
          throw UsageError(concat(name, ":", item.source().begin.line), concat("this [[", full, "]] is empty."));
        flatten(*item.as_table(), concat(full, ".", index++, "."), name, settings);
      }
      continue;
    }
    Setting setting{.key = full, .values = {}, .where = concat(name, ":", node.source().begin.line), .is_list = false};
    if (const auto* list = node.as_array()) {
      setting.is_list = true;
      for (const auto& item : *list) setting.values.push_back(value_text(item, setting.where));
    } else {
      setting.values.push_back(value_text(node, setting.where));
    }
    settings.push_back(std::move(setting));
  }
}

}  // namespace

Field& FieldList::add(const char* key, const char* doc, std::string expected) {
  fields_.push_back({.key = concat(section_, ".", key), .doc = doc, .expected = std::move(expected)});
  return fields_.back();
}

Field& FieldList::integer(const char* key, int64_t& value, Range range, const char* doc) {
  Field& field = add(key, doc, describe("a whole number", range));
  field.get = [&value] { return concat(value); };
  field.set = [field, &value, range](const std::string& text) {
    const auto parsed = parse_integer(text);
    if (!parsed || !inside(static_cast<double>(*parsed), range)) reject(field, text);
    value = *parsed;
  };
  return field;
}

Field& FieldList::integer(const char* key, int& value, Range range, const char* doc) {
  range.max = std::min(range.max, double{std::numeric_limits<int>::max()});
  Field& field = add(key, doc, describe("a whole number", range));
  field.get = [&value] { return concat(value); };
  field.set = [field, &value, range](const std::string& text) {
    const auto parsed = parse_integer(text);
    if (!parsed || !inside(static_cast<double>(*parsed), range)) reject(field, text);
    value = static_cast<int>(*parsed);
  };
  return field;
}

Field& FieldList::real(const char* key, double& value, Range range, const char* doc) {
  Field& field = add(key, doc, describe("a number", range));
  field.get = [&value] { return format_number(value); };
  field.set = [field, &value, range](const std::string& text) {
    const auto parsed = parse_number(text);
    if (!parsed || !inside(*parsed, range)) reject(field, text);
    value = *parsed;
  };
  return field;
}

Field& FieldList::flag(const char* key, bool& value, const char* doc) {
  Field& field = add(key, doc, "true or false");
  field.get = [&value] { return value ? "true" : "false"; };
  field.set = [field, &value](const std::string& text) {
    if (text != "true" && text != "false") reject(field, text);
    value = text == "true";
  };
  return field;
}

Field& FieldList::text(const char* key, std::string& value, const char* doc) {
  Field& field = add(key, doc, "text");
  field.is_text = true;
  field.get = [&value] { return value; };
  field.set = [&value](const std::string& text) { value = text; };
  return field;
}

Field& FieldList::choice(const char* key, std::vector<std::string> names, std::function<int()> get,
                         std::function<void(int)> set, const char* doc) {
  Field& field = add(key, doc, "one of " + join(names, ", "));
  field.is_text = true;
  field.get = [names, get] { return names[static_cast<size_t>(get())]; };
  field.set = [field, names, set](const std::string& text) {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) reject(field, text);
    set(static_cast<int>(found - names.begin()));
  };
  return field;
}

Field& FieldList::custom(const char* key, const char* doc, std::string expected, std::function<std::string()> get,
                         std::function<bool(const std::string&)> set) {
  Field& field = add(key, doc, std::move(expected));
  field.is_text = true;
  field.get = std::move(get);
  field.set = [field, set = std::move(set)](const std::string& text) {
    if (!set(text)) reject(field, text);
  };
  return field;
}

const Field& FieldList::at(const std::string& key, const std::string& where) const {
  for (const Field& field : fields_)
    if (field.key == key) return field;
  std::vector<std::string> keys;
  for (const Field& field : fields_) keys.push_back(field.key);
  const auto near = suggest(key, keys);
  throw UsageError(where,
                   concat("unknown key '", key, "'. ",
                          near ? concat("Did you mean '", *near, "'?") : "`normlab config keys` lists them all."));
}

bool FieldList::is_read(const Field& field) const {
  return std::all_of(field.read_when.begin(), field.read_when.end(), [this](const Condition& condition) {
    return condition.holds([this](const std::string& key) { return value_of(key); });
  });
}

bool FieldList::affects_results(const Field& field) const {
  const bool affects =
      field.effect == Effect::training || field.effect == Effect::measure ||
      (field.trains_when && field.trains_when->holds([this](const std::string& key) { return value_of(key); }));
  return affects && is_read(field);
}

std::string source_of(const Setting& setting) { return setting.where.substr(0, setting.where.rfind(':')); }

std::vector<Setting> optional_settings(std::vector<Setting> settings) {
  for (Setting& setting : settings) setting.optional = true;
  return settings;
}

std::string toml_text(const std::string& text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += concat('\\', c);
    else if (byte < 0x20 || byte == 0x7f)
      out += concat("\\u00", digits[byte >> 4], digits[byte & 15]);
    else
      out += c;
  }
  return out + '"';
}

std::string toml_value(const Field& field, const std::string& value) {
  return field.is_text ? toml_text(value) : value;
}

std::string to_toml(const FieldList& list) {
  std::string out, section;
  for (const Field& field : list.fields()) {
    const size_t dot = field.key.find('.');
    if (field.key.substr(0, dot) != section) {
      section = field.key.substr(0, dot);
      out += concat(out.empty() ? "" : "\n", "[", section, "]\n");
    }
    out += concat(field.key.substr(dot + 1), " = ", toml_value(field, field.get()), "\n");
  }
  return out;
}

std::vector<Setting> parse_toml(const std::string& text, const std::string& name) {
  std::vector<Setting> settings;
  require_toml_within_bounds(text, name);
  try {
    flatten(toml::parse(text, name), "", name, settings);
  } catch (const toml::parse_error& error) {
    throw UsageError(concat(name, ":", error.source().begin.line), concat(error.description(), "."));
  }
  return settings;
}

std::vector<Setting> read_toml(const std::string& path) { return parse_toml(read_file(path), path); }

Setting parse_setting(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError("--set", concat("got '", assignment, "', expected key=value, such as model.d_model=128."));
  const std::string key = trim(assignment.substr(0, equals)), value = trim(assignment.substr(equals + 1));
  Setting setting{.key = key, .values = {value}, .where = "--set", .is_list = false};
  if (value.starts_with('[') && value.ends_with(']')) {
    setting.is_list = true;
    setting.values.clear();
    for (const std::string& item : split(value.substr(1, value.size() - 2), ',')) {
      std::string text = trim(item);
      if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
      if (!text.empty()) setting.values.push_back(text);
    }
  }
  return setting;
}

void apply(const FieldList& list, const Setting& setting) {
  const Field& field = list.at(setting.key, setting.where);
  if (setting.is_list)
    throw UsageError(setting.where, concat("'", setting.key, "' takes one value; lists are for studies."));
  field.set(setting.values.front());
}

}  // namespace normlab
