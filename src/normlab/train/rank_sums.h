// Gradients of all ranks: summed in buckets, in a fixed order, those of the last layers while the first ones are still
// being differentiated.
#pragma once

#include <unordered_map>
#include <vector>

#include "normlab/ranks/ranks.h"
#include "normlab/train/optimizer.h"

namespace normlab {

class RankSums {
 public:
  // `early` of each parameter: its gradient is complete before the end of the backward pass, in reverse order.
  RankSums(RankGroup& ranks, std::vector<torch::Tensor> parameters, const std::vector<bool>& early);

  RankGroup& ranks() const { return ranks_; }
  // Of a batch, the rows of this rank. Rank 0 always has the first, whose layers a probe reads.
  int64_t first_row(int64_t rows) const { return share_of(rows, ranks_.rank()); }
  int64_t end_row(int64_t rows) const { return share_of(rows, ranks_.rank() + 1); }

  // The last backward pass of the step: this gradient will be there at the next call, or at the end of the pass.
  void complete(const c10::TensorImpl* parameter);
  // After the pass: the gradients of the replicas of this rank, in parts, become the sums over all ranks, which are
  // returned. A rank without rows has no parts.
  Gradients finish(const std::vector<Gradients>& parts);

 private:
  struct Bucket {
    std::vector<size_t> members;  // of the parameters
    torch::Tensor values;         // undefined: the gradient of its only member is summed in place
    size_t missing = 0;           // gradients of this step
  };
  int64_t share_of(int64_t rows, int rank) const { return (rows * rank + ranks_.size() - 1) / ranks_.size(); }
  void add_bucket(std::vector<size_t> members);
  torch::Tensor gradient(size_t member) const;  // contiguous; zeros where a rank has none
  void arrive(size_t member);
  void start_ready();
  void start(Bucket& bucket);
  void unpack(const Bucket& bucket) const;

  RankGroup& ranks_;
  std::vector<torch::Tensor> parameters_;
  std::unordered_map<const c10::TensorImpl*, size_t> place_;  // of parameters
  std::vector<Bucket> buckets_;                               // in the order in which they are summed
  std::vector<size_t> bucket_of_;
  size_t next_ = 0;  // bucket to start
  std::vector<bool> arrived_;
  const c10::TensorImpl* computing_ = nullptr;
};

// Error when another rank reads another text.
void require_same_text(RankGroup& ranks, const std::string& sha256);
// Ranks that took much longer than the median for their own part of the last steps, in words.
std::vector<std::string> slow_ranks(RankGroup& ranks, double own_seconds);
// Error that names the ranks whose weights differ from those of rank 0.
void require_same_weights(RankGroup& ranks, const std::vector<torch::Tensor>& parameters, int64_t step);

}  // namespace normlab
