// Folds: the text as contiguous blocks, one held out, the others to train on.
#pragma once

#include <cstdint>
#include <vector>

namespace normlab {

// Tokens begin .. end - 1.
struct TokenRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

struct Split {
  std::vector<TokenRange> train;  // what lies before and after the held-out block, where there is any
  TokenRange held_out;
};

// Block i of n tokens is floor(i n / folds) .. floor((i + 1) n / folds): sizes differ by at most one, and fold 9 of 10
// (counting from 0) holds out what nanoGPT does, all after the first int(0.9 n).
Split make_split(int64_t n_tokens, int folds, int fold);

// The number of places a window of seq_len inputs and as many targets, one further on, fits at.
int64_t window_starts(TokenRange segment, int seq_len);

// DataError unless a window fits into the held-out block and into a training segment.
void require_windows(const Split& split, int seq_len);

}  // namespace normlab
