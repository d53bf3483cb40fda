// Parallel text: loading with checks, and the pairs that training cannot use.
#include "normlab/data/parallel_text.h"

#include <algorithm>
#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/text_lines.h"

namespace normlab {
namespace {

std::vector<std::string> read_side(const std::filesystem::path& path) {
  std::vector<std::string> lines = read_lines(path);
  for (std::string& line : lines)
    if (line.ends_with('\r')) line.pop_back();
  return lines;
}

std::optional<DropReason> reason_to_drop(const std::string& source, const std::string& target, int64_t max_tokens) {
  const int64_t source_tokens = count_tokens(source), target_tokens = count_tokens(target);
  if (source_tokens == 0) return DropReason::empty_source;
  if (target_tokens == 0) return DropReason::empty_target;
  if (max_tokens > 0 && std::max(source_tokens, target_tokens) > max_tokens) return DropReason::too_long;
  return std::nullopt;
}

}  // namespace

ParallelText load_parallel_text(const std::filesystem::path& source, const std::filesystem::path& target) {
  ParallelText text{.source = read_side(source), .target = read_side(target)};
  const size_t in_source = text.source.size(), in_target = text.target.size();
  if (in_source == in_target) return text;
  const size_t common = std::min(in_source, in_target);
  throw DataError(source.string(),
                  concat("is not aligned with ", target.string(), "; got ", in_source, " and ", in_target,
                         " lines, expected the same number. They differ from line ", common + 1, ", which only ",
                         (in_source > in_target ? source : target).string(), " has."));
}

int64_t count_tokens(std::string_view line) {
  int64_t tokens = 0;
  char before = ' ';
  for (const char c : line) {
    tokens += c != ' ' && before == ' ';
    before = c;
  }
  return tokens;
}

int64_t DroppedPairs::total() const {
  int64_t sum = 0;
  for (const Row& row : rows) sum += row.pairs;
  return sum;
}

std::string DroppedPairs::describe() const {
  std::string text = concat("dropped ", total(), " of ", pairs_before, " pairs");
  for (size_t reason = 0; reason < rows.size(); ++reason) {
    if (rows[reason].pairs == 0) continue;
    text +=
        concat(text.find(':') == std::string::npos ? ": " : ", ", rows[reason].pairs, " with ", drop_reasons[reason]);
    if (reason == static_cast<size_t>(DropReason::too_long)) text += concat(" for ", max_tokens, " tokens");
    text += concat(" (first at line ", rows[reason].first_line, ")");
  }
  return text;
}

DroppedPairs drop_unusable_pairs(ParallelText& text, int64_t max_tokens) {
  DroppedPairs dropped{.pairs_before = static_cast<int64_t>(text.source.size()), .max_tokens = max_tokens, .rows = {}};
  ParallelText kept;
  for (size_t i = 0; i < text.source.size(); ++i) {
    if (const auto reason = reason_to_drop(text.source[i], text.target[i], max_tokens)) {
      DroppedPairs::Row& row = dropped.rows[static_cast<size_t>(*reason)];
      if (row.pairs++ == 0) row.first_line = static_cast<int64_t>(i) + 1;
      continue;
    }
    kept.source.push_back(std::move(text.source[i]));
    kept.target.push_back(std::move(text.target[i]));
  }
  text = std::move(kept);
  return dropped;
}

}  // namespace normlab
