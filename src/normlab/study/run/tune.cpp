#include "normlab/study/run/tune.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

double value_of(const std::string& text) { return *parse_number(text); }

std::vector<std::string> grid_of(const FieldList& list, const std::string& key, const Setting& values) {
  const Field& field = list.at(key, values.where);
  std::vector<std::string> grid;
  for (const std::string& value : values.values) {
    field.set(value);
    const auto number = parse_number(field.get());
    if (field.is_text || !number || !(*number > 0))
      throw UsageError("study.tune.values", concat("got ", value, " for ", key, ", expected numbers above 0."));
    grid.push_back(field.get());
  }
  std::sort(grid.begin(), grid.end(),
            [](const std::string& a, const std::string& b) { return value_of(a) < value_of(b); });
  if (grid.size() < 2 || std::adjacent_find(grid.begin(), grid.end()) != grid.end())
    throw UsageError("study.tune.values", "expected two or more different values, such as [1e-3, 3e-3, 1e-2].");
  return grid;
}

}  // namespace

TuneConfig read_tune(const std::vector<Setting>& settings, const FieldList& list) {
  TuneConfig tune;
  if (settings.empty()) return tune;
  const Setting* values = nullptr;
  bool has_seed = false;
  FieldList own;
  own.section("study.tune");
  own.text("key", tune.key, "the key to tune, such as optim.lr");
  own.integer("seed", tune.seed, {.min = 0, .max = 9e15}, "seed of the tuning trials, not used by the study itself");
  for (const Setting& setting : settings) {
    has_seed = has_seed || setting.key == "study.tune.seed";
    if (setting.key == "study.tune.values")
      values = &setting;
    else
      apply(own, setting);
  }
  if (tune.key.empty() || !values || !has_seed)
    throw UsageError("study.tune",
                     "needs key, values and seed, such as key = \"optim.lr\", values = [1e-3, 3e-3, "
                     "1e-2] and seed = 99.");
  tune.values = grid_of(list, tune.key, *values);
  return tune;
}

std::string to_toml(const TuneConfig& tune, const FieldList& list) {
  if (!tune.wanted()) return "";
  std::vector<std::string> values;
  for (const std::string& value : tune.values) values.push_back(toml_value(list.at(tune.key, "study.tune.key"), value));
  return concat("\n[study.tune]\nkey = ", toml_text(tune.key), "\nvalues = [", join(values, ", "),
                "]\nseed = ", tune.seed, "\n");
}

std::optional<size_t> best_value(const std::vector<double>& losses) {
  if (std::any_of(losses.begin(), losses.end(), [](double loss) { return std::isnan(loss); })) return std::nullopt;
  return static_cast<size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
}

std::optional<std::string> extension(const TuneConfig& tune, size_t best, const FieldList& list) {
  const std::vector<std::string>& grid = tune.values;
  if (best != 0 && best + 1 != grid.size()) return std::nullopt;
  const double edge = value_of(grid[best]), inner = value_of(grid[best == 0 ? 1 : best - 1]);
  const Field& field = list.at(tune.key, "study.tune.key");
  try {
    field.set(format_number(value_of(significant(edge * edge / inner, 2))));
    return field.get();
  } catch (const UsageError&) {
    return std::nullopt;  // beyond the key's range, or not a whole number
  }
}

}  // namespace normlab
