// Rows of metrics.jsonl as they are read for curves: numbers only, one row in memory at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

namespace normlab {

struct MetricsRow {
  struct Value {
    std::string_view key;
    double number;
    bool is_number;  // false for what is none, such as true
  };
  int64_t step = 0;
  std::vector<Value> values;  // in the order of the line, without the step

  bool has(std::string_view key) const { return find(key) != nullptr; }
  double number(std::string_view key, double otherwise) const;

 private:
  const Value* find(std::string_view key) const;
};

// Every row, as MetricsLog::read() finds them and with the same errors, some ten times as fast.
void for_each_row(const std::filesystem::path& metrics, const std::function<void(const MetricsRow&)>& visit);

}  // namespace normlab
