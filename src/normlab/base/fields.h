// Config fields: each struct lists its fields once; TOML, --set, --help, generated docs, checkpoints and the
// fingerprint are all made from that list.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

struct Field {
  std::string key;       // "model.n_layers"
  std::string doc;       // one sentence for --help and docs/configuration.md
  std::string expected;  // "a whole number from 1 to 1000"
  bool is_text = false;  // written with quotes in TOML
  std::function<std::string()> get;
  std::function<void(const std::string&)> set;  // throws UsageError that names the key
};

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;  // min itself is not allowed
};

// The names of an enum's values in the order of the enumerators; each config enum specialises it.
template <class E>
std::vector<std::string> enum_names();

class FieldList {
 public:
  // Fields added from here on belong to this section ("model").
  void section(std::string name) { section_ = std::move(name); }

  void integer(const char* key, int& value, Range range, const char* doc);
  void integer(const char* key, int64_t& value, Range range, const char* doc);
  void real(const char* key, double& value, Range range, const char* doc);
  void flag(const char* key, bool& value, const char* doc);
  void text(const char* key, std::string& value, const char* doc);
  template <class E>
  void choice(const char* key, E& value, const char* doc) {
    choice(
        key, enum_names<E>(), [&value] { return static_cast<int>(value); },
        [&value](int index) { value = static_cast<E>(index); }, doc);
  }
  // A field with its own text form.
  void custom(const char* key, const char* doc, std::string expected, std::function<std::string()> get,
              std::function<bool(const std::string&)> set);

  const std::vector<Field>& fields() const { return fields_; }
  // The field of that key; UsageError with the nearest name when there is none.
  const Field& at(const std::string& key, const std::string& where) const;

 private:
  void choice(const char* key, std::vector<std::string> names, std::function<int()> get, std::function<void(int)> set,
              const char* doc);
  Field& add(const char* key, const char* doc, std::string expected);

  std::string section_;
  std::vector<Field> fields_;
};

// Every field as TOML, grouped by section, in the order of the list.
std::string to_toml(const FieldList& list);
std::string toml_value(const Field& field, const std::string& value);  // with quotes where TOML wants them
std::string toml_text(const std::string& text);                        // quoted

// One `key = value` of a TOML file or of --set; a list is for studies, which try each of its values.
struct Setting {
  std::string key;
  std::vector<std::string> values;
  std::string where;  // "recipes/x.toml:12" or "--set"
  bool is_list = false;
};
// Keys of the i-th [[variant]] are "variant.i.norm.p".
std::vector<Setting> read_toml(const std::string& path);
std::vector<Setting> parse_toml(const std::string& text, const std::string& name);
Setting parse_setting(const std::string& assignment);  // "model.d_model=128"

// Applies one setting that must hold a single value.
void apply(const FieldList& list, const Setting& setting);

}  // namespace normlab
