// Config fields: each struct lists its fields once, with their attributes; TOML, --set, --help, generated docs, what
// may change on resume or vary in a study, and which settings have no effect all follow from that list.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "normlab/base/condition.h"

namespace normlab {

// What another value of a field changes.
enum class Effect {
  training,   // what is learned
  measure,    // the figures that are reported of it
  record,     // what is written down on the way
  execution,  // how it is computed: speed, and rounding at most
  storage,    // which checkpoints are kept
};
// What a study may do with a field: give variants different values, repeat each variant with several, or neither,
// because losses could not be compared.
enum class InStudy { varies, repeats, shared };

struct Field {
  std::string key;       // "model.n_layers"
  std::string doc;       // one sentence for --help and docs/configuration.md
  std::string expected;  // "a whole number from 1 to 1000"
  bool is_text = false;  // written with quotes in TOML
  std::function<std::string()> get = {};
  std::function<void(const std::string&)> set = {};  // throws UsageError that names the key

  // Attributes, declared with the field.
  Effect effect = Effect::training;
  std::optional<Condition> trains_when = {};  // then the effect is on training after all
  bool on_resume = false;                     // may change when a run resumes
  InStudy in_study = InStudy::varies;
  bool from_data = false;                                          // a run fills it in from its text
  std::vector<Condition> read_when = {};                           // all must hold, or nothing reads the field
  std::vector<std::pair<std::string, std::string>> meanings = {};  // of words among its values

  Field& affects(Effect kind) { return effect = kind, *this; }
  Field& trains(const char* condition) { return trains_when.emplace(condition), *this; }
  Field& may_change_on_resume() { return on_resume = true, *this; }
  Field& is_repeated_in_studies() { return in_study = InStudy::repeats, *this; }
  Field& is_shared_in_studies() { return in_study = InStudy::shared, *this; }
  Field& filled_from_data() { return from_data = true, *this; }
  Field& read_if(const char* condition) { return read_when.emplace_back(condition), *this; }
  Field& meaning(const char* word, const char* text) { return meanings.emplace_back(word, text), *this; }
};

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;  // min itself is not allowed
  bool infinite = false;  // inf is allowed
};

// The names of an enum's values in the order of the enumerators; each config enum specialises it.
template <class E>
std::vector<std::string> enum_names();

class FieldList {
 public:
  // Fields added from here on belong to this section ("model").
  void section(std::string name) { section_ = std::move(name); }

  Field& integer(const char* key, int& value, Range range, const char* doc);
  Field& integer(const char* key, int64_t& value, Range range, const char* doc);
  Field& real(const char* key, double& value, Range range, const char* doc);
  Field& flag(const char* key, bool& value, const char* doc);
  Field& text(const char* key, std::string& value, const char* doc);
  template <class E>
  Field& choice(const char* key, E& value, const char* doc) {
    return choice(
        key, enum_names<E>(), [&value] { return static_cast<int>(value); },
        [&value](int index) { value = static_cast<E>(index); }, doc);
  }
  // A field with its own text form.
  Field& custom(const char* key, const char* doc, std::string expected, std::function<std::string()> get,
                std::function<bool(const std::string&)> set);

  const std::vector<Field>& fields() const { return fields_; }
  // The field of that key; UsageError with the nearest name when there is none.
  const Field& at(const std::string& key, const std::string& where) const;

  std::string value_of(const std::string& key) const { return at(key, "a condition").get(); }
  bool is_read(const Field& field) const;          // with the values of the other fields as they are
  bool affects_results(const Field& field) const;  // training or measures, and is read

 private:
  Field& choice(const char* key, std::vector<std::string> names, std::function<int()> get, std::function<void(int)> set,
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
  bool optional = false;  // no error when nothing reads it: written by a run, which stores every key
};
std::string source_of(const Setting& setting);  // "recipes/x.toml" or "--set"
std::vector<Setting> optional_settings(std::vector<Setting> settings);
// Keys of the i-th [[variant]] are "variant.i.norm.p".
std::vector<Setting> read_toml(const std::string& path);
std::vector<Setting> parse_toml(const std::string& text, const std::string& name);
Setting parse_setting(const std::string& assignment);  // "model.d_model=128"

// Applies one setting that must hold a single value.
void apply(const FieldList& list, const Setting& setting);

}  // namespace normlab
