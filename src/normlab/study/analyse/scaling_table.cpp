// Points of a scaling fit from a CSV file.
#include <algorithm>
#include <cmath>
#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/text_lines.h"
#include "normlab/study/analyse/scaling_points.h"

namespace normlab {
namespace {

struct Columns {
  size_t n_params, n_tokens, loss;
  std::optional<size_t> scheme, flops;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells = split(line, ',');
  for (std::string& cell : cells) cell = trim(cell);
  return cells;
}

Columns columns_of(const std::vector<std::string>& names, const std::string& where) {
  const auto place = [&](const std::string& name) -> std::optional<size_t> {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<size_t>(found - names.begin());
  };
  for (const char* needed : {"n_params", "n_tokens", "loss"})
    if (!place(needed))
      throw DataError(where, concat("has no column ", needed, "; got ", join(names, ","),
                                    ", expected n_params,n_tokens,loss and, if known, scheme,flops."));
  return {*place("n_params"), *place("n_tokens"), *place("loss"), place("scheme"), place("flops")};
}

}  // namespace

void add_points(ScalingData& data, const std::filesystem::path& file) {
  const std::vector<std::string> lines = read_lines(file.string());
  if (lines.empty()) throw DataError(file.string(), "is empty; expected n_params,n_tokens,loss and rows of numbers.");
  const std::vector<std::string> names = cells_of(lines.front());
  const Columns columns = columns_of(names, file.string());
  for (size_t i = 1; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const std::string where = concat(file.string(), ":", i + 1);
    const std::vector<std::string> cells = cells_of(lines[i]);
    if (cells.size() != names.size())
      throw DataError(where, concat("got ", cells.size(), " cells, expected ", names.size(), " as in the first line."));
    const auto positive = [&](size_t column) {
      const auto value = parse_number(cells[column]);
      if (!value || !(*value > 0) || !std::isfinite(*value))
        throw DataError(where, concat(names[column], " is '", cells[column], "', expected a number above 0."));
      return *value;
    };
    const std::string loss = cells[columns.loss];
    if (const auto value = parse_number(loss); loss == "nan" || loss == "NaN" || (value && std::isinf(*value))) {
      data.notes.push_back(concat(where, " is left out: its loss is ", loss, ", so it diverged"));
      continue;
    }
    data.runs.push_back({.scheme = columns.scheme ? cells[*columns.scheme] : "",
                         .size = "",
                         .n_params = positive(columns.n_params),
                         .n_tokens = positive(columns.n_tokens),
                         .loss = positive(columns.loss),
                         .flops = columns.flops ? positive(*columns.flops) : 0.0});
  }
}

}  // namespace normlab
