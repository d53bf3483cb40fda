// Folds: boundaries in whole numbers, so that no rounding moves one.
#include "normlab/data/folds.h"

#include <algorithm>
#include <string_view>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

Split make_split(int64_t n_tokens, int folds, int fold) {
  if (folds < 2) throw UsageError("data.folds", concat("too few; got ", folds, ", expected 2 or more."));
  if (fold < 0 || fold >= folds)
    throw UsageError("data.fold", concat("no such fold; got ", fold, ", expected 0 to ", folds - 1,
                                         " (data.folds=", folds, ", counting from 0)."));
  // floor(i n / folds) without the product i n, which could overflow.
  const auto boundary = [&](int64_t i) { return n_tokens / folds * i + n_tokens % folds * i / folds; };
  Split split{.train = {}, .held_out = {boundary(fold), boundary(fold + 1)}};
  for (const TokenRange segment : {TokenRange{0, split.held_out.begin}, TokenRange{split.held_out.end, n_tokens}})
    if (segment.size() > 0) split.train.push_back(segment);
  return split;
}

int64_t window_starts(TokenRange segment, int seq_len) { return std::max<int64_t>(0, segment.size() - seq_len); }

void require_windows(const Split& split, int seq_len) {
  const auto require = [&](std::string_view part, int64_t size) {
    if (size <= seq_len)
      throw DataError(
          "data", concat(part, " has ", size, " tokens; a window of seq_len=", seq_len, " needs ", int64_t{seq_len} + 1,
                         ". Use a shorter model.seq_len, fewer folds (data.folds) or more text."));
  };
  int64_t longest = 0;
  for (const TokenRange& segment : split.train) longest = std::max(longest, segment.size());
  require("the held-out part", split.held_out.size());
  require("the longest training part", longest);
}

}  // namespace normlab
