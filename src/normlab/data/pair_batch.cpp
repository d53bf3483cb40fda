// Batches of sentence pairs: an order of pairs is cut greedily where the budget is full.
#include "normlab/data/pair_batch.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr uint64_t pair_stream = 0x70616972;  // "pair": keeps these draws apart from other streams of the seed
enum Draw : uint64_t { draw_pairs, draw_batches };

template <class T>
void shuffle(std::vector<T>& items, uint64_t key) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[draw_below(key, i, i)]);
}

int64_t longer_side(const PairLengths& pair) { return std::max(pair.source, pair.target); }

// A batch that is being filled.
class OpenBatch {
 public:
  bool fits(const PairLengths& pair, int64_t budget) const {
    const auto pairs = static_cast<int64_t>(batch_.size()) + 1;
    return batch_.empty() || pairs * std::max(longest_, longer_side(pair)) <= budget;
  }
  void add(size_t number, const PairLengths& pair) {
    batch_.push_back(number);
    longest_ = std::max(longest_, longer_side(pair));
  }
  bool empty() const { return batch_.empty(); }
  PairBatch close() {
    longest_ = 0;
    return std::exchange(batch_, {});
  }

 private:
  PairBatch batch_;
  int64_t longest_ = 0;
};

// The bucket of a length; the longest pair of a bucket is at most a fifth longer than its shortest, from 8 tokens on.
int bucket_of(int64_t length) {
  int bucket = 0;
  for (double upper = 8; upper < static_cast<double>(length); upper *= 1.2) ++bucket;
  return bucket;
}

std::vector<PairBatch> fixed_batches(std::span<const PairLengths> lengths, int64_t budget) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t number) { return lengths[number].source; });
  std::vector<PairBatch> batches;
  OpenBatch open;
  for (const size_t number : order) {
    if (!open.fits(lengths[number], budget)) batches.push_back(open.close());
    open.add(number, lengths[number]);
  }
  if (!open.empty()) batches.push_back(open.close());
  return batches;
}

std::vector<PairBatch> bucketed_batches(std::span<const PairLengths> lengths, int64_t budget, uint64_t key) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  shuffle(order, key);
  std::vector<PairBatch> batches;
  std::map<int, OpenBatch> open;
  for (const size_t number : order) {
    OpenBatch& bucket = open[bucket_of(longer_side(lengths[number]))];
    if (!bucket.fits(lengths[number], budget)) batches.push_back(bucket.close());
    bucket.add(number, lengths[number]);
  }
  for (auto& [length, bucket] : open) batches.push_back(bucket.close());
  return batches;
}

}  // namespace

std::vector<PairBatch> pair_batches(std::span<const PairLengths> lengths, const PairBatchPlan& plan, int64_t epoch) {
  if (plan.tokens_per_batch < 1)
    throw UsageError("batch", concat("got ", plan.tokens_per_batch, " tokens a batch, expected 1 or more."));
  std::vector<PairBatch> batches =
      plan.batching == PairBatching::fixed
          ? fixed_batches(lengths, plan.tokens_per_batch)
          : bucketed_batches(lengths, plan.tokens_per_batch, stream_key(plan.seed, pair_stream, epoch, draw_pairs));
  shuffle(batches, stream_key(plan.seed, pair_stream, epoch, draw_batches));
  return batches;
}

}  // namespace normlab
