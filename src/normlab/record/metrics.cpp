// The log of a run's numbers.
#include "normlab/record/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/json.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

// The same value with every number that JSON lacks replaced by its name, and back.
Json with_names(const Json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return format_number(value.get<double>());
  if (!value.is_structured()) return value;
  Json copy = value;
  for (Json& item : copy) item = with_names(item);
  return copy;
}
Json with_numbers(Json value) {
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value.is_structured()) {
    for (Json& item : value) item = with_numbers(std::move(item));
  }
  return value;
}

struct Row {
  std::string_view line;  // without its newline
  Json values;
};

bool is_row(const Json& value) {
  constexpr uint64_t largest = std::numeric_limits<int64_t>::max();
  return value.is_object() && value.contains("step") && value["step"].is_number_unsigned() &&
         value["step"].get<uint64_t>() <= largest;
}

// A last line without a newline is what a killed writer leaves; it counts only when it is whole.
std::vector<Row> rows_of(const std::filesystem::path& path, std::string_view content) {
  std::vector<Row> rows;
  for (size_t start = 0, end; start < content.size(); start = end + 1) {
    end = std::min(content.find('\n', start), content.size());
    const std::string_view line = content.substr(start, end - start);
    Json values = parse_json<Json>(line);
    if (!is_row(values)) {
      if (end == content.size()) break;
      throw DataError(path.string(), concat("line ", rows.size() + 1,
                                            " is not a JSON object with a step of 0 or more. The file is damaged."));
    }
    rows.push_back({line, with_numbers(std::move(values))});
  }
  return rows;
}

void retain_rows(const std::filesystem::path& path, const std::string& content, const MetricsLog::Keep& keep) {
  std::string kept;
  for (const Row& row : rows_of(path, content)) {
    if (keep(row.values)) kept += concat(row.line, "\n");
  }
  if (kept != content) write_file_atomically(path, kept);
}

// Counts the rows, too.
File open_whole(const std::filesystem::path& path, int64_t& rows) {
  const bool is_new = !std::filesystem::exists(path);
  if (!is_new) {
    std::string content = read_file(path);
    if (!content.empty() && content.back() != '\n') {
      retain_rows(path, content, [](const Json&) { return true; });
      content = read_file(path);
    }
    rows = std::count(content.begin(), content.end(), '\n');
  }
  File file = File::append(path);
  if (is_new) sync_folder_of(path);  // or a power cut could lose the name of a file whose rows were synced
  return file;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& path) : file_(open_whole(path, rows_)) {}

void MetricsLog::append(int64_t step, const Json& values) {
  Json row = {{"step", step}};  // first, whatever the values hold
  row.update(with_names(values));
  row["step"] = step;
  file_.write(row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  ++rows_;
}

std::vector<Json> MetricsLog::read(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  std::vector<Json> found;
  for (Row& row : rows_of(path, content)) found.push_back(std::move(row.values));
  return found;
}

void MetricsLog::retain(const std::filesystem::path& path, const Keep& keep) {
  if (std::filesystem::exists(path)) retain_rows(path, read_file(path), keep);
}

}  // namespace normlab
