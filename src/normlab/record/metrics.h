// The log of a run's numbers: metrics.jsonl, one JSON object per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "normlab/base/file.h"

namespace normlab {

// A line is {"step": ..., ...}; it reaches the system whole, before append() returns. Numbers read back exactly;
// those that JSON lacks are written as the strings "nan", "inf" and "-inf", and read back as numbers.
class MetricsLog {
 public:
  // Continues the file when it exists, less a line torn by a killed writer.
  explicit MetricsLog(const std::filesystem::path& path);

  void append(int64_t step, const nlohmann::ordered_json& values);
  void sync() { file_.sync(); }
  int64_t rows() const { return rows_; }  // in the file

  // Every row; a torn last line is left out, anything else that is not a row is a DataError with its line number.
  static std::vector<nlohmann::ordered_json> read(const std::filesystem::path& path);

  // Drops, atomically, the rows that are not to be kept, for a run that resumes from an earlier checkpoint. A run
  // stopped before its first row has no file, and nothing to drop.
  using Keep = std::function<bool(const nlohmann::ordered_json& row)>;
  static void retain(const std::filesystem::path& path, const Keep& keep);

 private:
  int64_t rows_ = 0;
  File file_;
};

}  // namespace normlab
