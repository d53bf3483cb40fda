// metrics.jsonl: what is read can be written and read again; a torn last line is dropped.
#include "normlab/record/metrics.h"

#include <nlohmann/json.hpp>

#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/base/file.h"
#include "normlab/record/metrics_rows.h"
#include "sandbox.h"

namespace normlab {

void fuzz_metrics(const uint8_t* bytes, size_t size) {
  using Rows = std::vector<nlohmann::ordered_json>;
  static const TemporaryFolder folder;
  const auto dump = [](const Rows& rows) {
    std::string out;
    for (const auto& row : rows) out += row.dump() + "\n";
    return out;
  };
  const MemoryFile file(text_of(bytes, size));
  Rows rows;
  const bool accepted = accepts([&] { rows = MetricsLog::read(file.path()); });
  std::vector<int64_t> steps;
  const bool quickly =
      accepts([&] { for_each_row(file.path(), [&](const MetricsRow& row) { steps.push_back(row.step); }); });
  require(quickly == accepted, "both readers accept the same files");
  if (!accepted) return;
  require(steps.size() == rows.size(), "both readers find the same rows");

  const auto copy = folder / "metrics.jsonl";
  std::filesystem::remove(copy);
  {
    MetricsLog log(copy);
    for (const auto& row : rows) log.append(row["step"].get<int64_t>(), row);
  }
  const Rows again = MetricsLog::read(copy);
  require(again.size() == rows.size(), "every row is written");
  for (size_t i = 0; i < rows.size(); ++i)
    require(again[i]["step"].get<int64_t>() == rows[i]["step"].get<int64_t>(), "a row keeps its step");
  {
    MetricsLog resumed(copy);
    resumed.append(1, {{"loss", 1.0}});
  }
  require(MetricsLog::read(copy).size() == rows.size() + 1, "a log is continued");
  dump(again);
}

}  // namespace normlab
