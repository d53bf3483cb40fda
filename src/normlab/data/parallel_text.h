// Parallel text: two files whose lines are translations of each other, checked, and freed of unusable pairs.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

struct ParallelText {
  std::vector<std::string> source, target;  // line i of one is the translation of line i of the other
};

// Plain or gzip, either end of line. DataError when a file cannot be read as lines of UTF-8, or when they have not as
// many lines as each other.
ParallelText load_parallel_text(const std::filesystem::path& source, const std::filesystem::path& target);

int64_t count_tokens(std::string_view line);  // words between spaces, the subwords of a segmented line

enum class DropReason { empty_source, empty_target, too_long };
inline constexpr std::array<std::string_view, 3> drop_reasons = {"an empty source", "an empty target",
                                                                 "a side that is too long"};

struct DroppedPairs {
  struct Row {
    int64_t pairs = 0;
    int64_t first_line = 0;  // of the pairs, counted from 1
  };
  int64_t pairs_before = 0;
  int64_t max_tokens = 0;
  std::array<Row, drop_reasons.size()> rows;

  int64_t total() const;
  // "dropped 3 of 11233 pairs: 2 with an empty source (first at line 17), ..."
  std::string describe() const;
};

// Removes pairs with an empty side, and those with a side of more than `max_tokens` tokens; 0 is no limit.
DroppedPairs drop_unusable_pairs(ParallelText& text, int64_t max_tokens);

}  // namespace normlab
