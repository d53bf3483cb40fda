// Batches: windows are numbered over all segments, and a draw is one such number.
#include "normlab/data/batch.h"

#include <algorithm>
#include <utility>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr uint64_t batch_stream = 0x6261746368;  // "batch": keeps these draws apart from other streams of the seed

// The begin of window number `index`, 0 <= index < the sum of window_starts over the segments.
int64_t window_begin(std::span<const TokenRange> segments, int seq_len, int64_t index) {
  for (const TokenRange& segment : segments) {
    const int64_t starts = window_starts(segment, seq_len);
    if (index < starts) return segment.begin + index;
    index -= starts;
  }
  throw Error("batch", "window number beyond the last.");
}

void check_buffers(const BatchPlan& plan, size_t n_tokens, const Split& split, size_t n_inputs, size_t n_targets) {
  const int64_t expected = int64_t{plan.batch_size} * plan.seq_len;
  if (std::cmp_not_equal(n_inputs, expected) || n_targets != n_inputs)
    throw Error("batch", concat("wrong buffer size; got ", n_inputs, " inputs and ", n_targets, " targets, expected ",
                                expected, " of each."));
  for (const TokenRange& segment : split.train)
    if (segment.begin < 0 || std::cmp_greater(segment.end, n_tokens))
      throw Error("batch", concat("the split reaches to token ", segment.end, " of a text of ", n_tokens, "."));
}

}  // namespace

void fill_batch(const BatchPlan& plan, const Tokens& tokens, const Split& split, int64_t step,
                std::span<int64_t> inputs, std::span<int64_t> targets) {
  check_buffers(plan, tokens.size(), split, inputs.size(), targets.size());
  int64_t starts = 0;
  for (const TokenRange& segment : split.train) starts += window_starts(segment, plan.seq_len);
  if (starts == 0) require_windows(split, plan.seq_len);

  const uint64_t key = stream_key(plan.seed, batch_stream, plan.fold, step);
  const auto length = static_cast<size_t>(plan.seq_len);
  for (size_t row = 0; row < static_cast<size_t>(plan.batch_size); ++row) {
    const auto index = static_cast<int64_t>(draw_below(key, row, static_cast<uint64_t>(starts)));
    const auto begin = static_cast<size_t>(window_begin(split.train, plan.seq_len, index));
    tokens.copy_window(begin, inputs.subspan(row * length, length), targets.subspan(row * length, length));
  }
}

std::vector<EvalWindow> eval_windows(TokenRange segment, int seq_len, int max_windows) {
  if (seq_len < 1 || max_windows < 0)
    throw UsageError(
        "eval", concat("got seq_len ", seq_len, " and ", max_windows, " windows, expected 1 or more and 0 or more."));
  const int64_t n_targets = std::max<int64_t>(0, segment.size() - 1);
  const int64_t whole = n_targets / seq_len;  // windows of full length
  std::vector<EvalWindow> windows;
  if (max_windows > 0 && max_windows <= whole) {
    // The middle one of each of max_windows equal stretches.
    for (int64_t i = 0; i < max_windows; ++i)
      windows.push_back({segment.begin + (2 * i + 1) * whole / (2 * int64_t{max_windows}) * seq_len, seq_len});
    return windows;
  }
  for (int64_t i = 0; i < whole; ++i) windows.push_back({segment.begin + i * seq_len, seq_len});
  if (const int64_t rest = n_targets % seq_len; rest > 0)
    windows.push_back({segment.begin + whole * seq_len, static_cast<int>(rest)});
  return windows;
}

}  // namespace normlab
