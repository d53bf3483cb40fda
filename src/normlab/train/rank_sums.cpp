#include "normlab/train/rank_sums.h"

#include <torch/cuda.h>

#include <algorithm>
#include <cstring>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

// Large enough that latency does not count, small enough that the first is on its way early.
constexpr size_t bucket_floats = size_t{1} << 18;

uint64_t checksum(const std::vector<Tensor>& parameters) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a over whole floats
  for (const Tensor& parameter : parameters) {
    const Tensor flat = parameter.detach().contiguous().cpu();
    const auto* values = static_cast<const float*>(flat.const_data_ptr());
    for (int64_t i = 0; i < flat.numel(); ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, values + i, sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3;
    }
  }
  return hash;
}

}  // namespace

RankSums::RankSums(RankGroup& ranks, std::vector<Tensor> parameters, const std::vector<bool>& early)
    : ranks_(ranks), parameters_(std::move(parameters)), bucket_of_(parameters_.size()), arrived_(parameters_.size()) {
  for (size_t i = 0; i < parameters_.size(); ++i) place_[parameters_[i].unsafeGetTensorImpl()] = i;
  for (const bool wanted : {true, false}) {
    std::vector<size_t> members;
    size_t floats = 0;
    for (size_t i = parameters_.size(); i-- > 0;) {
      if (early[i] != wanted) continue;
      const auto size = static_cast<size_t>(parameters_[i].numel());
      if (!members.empty() && floats + size > bucket_floats) add_bucket(std::exchange(members, {})), floats = 0;
      members.push_back(i);
      floats += size;
    }
    if (!members.empty()) add_bucket(std::move(members));
  }
}

void RankSums::add_bucket(std::vector<size_t> members) {
  Bucket bucket{.members = std::move(members), .values = {}};
  int64_t floats = 0;
  for (const size_t member : bucket.members) {
    floats += parameters_[member].numel();
    bucket_of_[member] = buckets_.size();
  }
  // Gradients on a GPU go through memory of the host where MPI does not take them from there.
  const auto where = parameters_[bucket.members.front()].options().requires_grad(false);
  const bool staged = !where.device().is_cpu() && !ranks_.takes_device_memory();
  if (bucket.members.size() > 1 || staged)
    bucket.values = torch::empty({floats}, staged ? where.device(torch::kCPU) : where);
  bucket.missing = bucket.members.size();
  buckets_.push_back(std::move(bucket));
}

Tensor RankSums::gradient(size_t member) const {
  Tensor parameter = parameters_[member];
  Tensor& gradient = parameter.mutable_grad();
  if (!gradient.defined())
    gradient = torch::zeros_like(parameter.detach());
  else if (!gradient.is_contiguous())
    gradient = gradient.contiguous();
  return gradient;
}

void RankSums::complete(const c10::TensorImpl* parameter) {
  if (computing_) arrive(place_.at(computing_));
  computing_ = place_.contains(parameter) ? parameter : nullptr;
}

void RankSums::arrive(size_t member) {
  if (arrived_[member]) return;
  arrived_[member] = true;
  --buckets_[bucket_of_[member]].missing;
  start_ready();
}

// Never out of their order, which all ranks must share.
void RankSums::start_ready() {
  for (; next_ < buckets_.size() && buckets_[next_].missing == 0; ++next_) start(buckets_[next_]);
}

void RankSums::start(Bucket& bucket) {
  const torch::NoGradGuard no_grad;
  const Tensor sent = bucket.values.defined() ? bucket.values : gradient(bucket.members.front());
  int64_t at = 0;
  for (const size_t member : bucket.members) {
    if (!bucket.values.defined()) break;
    const Tensor from = gradient(member);
    sent.narrow(0, at, from.numel()).copy_(from.view(-1));
    at += from.numel();
  }
  if (sent.is_cuda()) torch::cuda::synchronize(sent.device().index());  // MPI knows nothing of streams
  ranks_.start_sum(sent.mutable_data_ptr<float>(), static_cast<size_t>(sent.numel()));
}

void RankSums::unpack(const Bucket& bucket) const {
  if (!bucket.values.defined()) return;
  int64_t at = 0;
  for (const size_t member : bucket.members) {
    const Tensor to = gradient(member);
    to.view(-1).copy_(bucket.values.narrow(0, at, to.numel()));
    at += to.numel();
  }
}

Gradients RankSums::finish(const std::vector<Gradients>& parts) {
  const torch::NoGradGuard no_grad;
  for (size_t part = 1; part < parts.size(); ++part) torch::_foreach_add_(parts.front(), parts[part]);
  computing_ = nullptr;
  for (size_t member = 0; member < parameters_.size(); ++member) arrive(member);
  ranks_.finish();
  Gradients sums;
  for (Bucket& bucket : buckets_) {
    unpack(bucket);
    bucket.missing = bucket.members.size();
  }
  for (size_t member = 0; member < parameters_.size(); ++member) sums.push_back(gradient(member));
  std::fill(arrived_.begin(), arrived_.end(), false);
  next_ = 0;
  return sums;
}

void require_same_text(RankGroup& ranks, const std::string& sha256) {
  const std::vector<std::string> all = ranks.gather(sha256);
  for (int rank = 1; rank < ranks.size(); ++rank)
    if (all[static_cast<size_t>(rank)] != all.front())
      throw DataError("--data", concat(name_of(ranks, rank), " reads another text than ", name_of(ranks, 0),
                                       ". Give all machines the same file."));
}

std::vector<std::string> slow_ranks(RankGroup& ranks, double own_seconds) {
  constexpr double much = 1.5;
  std::vector<double> seconds;
  for (const std::string& each : ranks.gather(concat(own_seconds))) seconds.push_back(parse_number(each).value_or(0.0));
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[(sorted.size() - 1) / 2];
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < seconds.size(); ++rank)
    if (median > 0.0 && seconds[rank] > much * median)
      lines.push_back(concat(name_of(ranks, static_cast<int>(rank)), " is slow: its part of a step takes ",
                             fixed(seconds[rank] / median, 1), " times the median of all ranks"));
  return lines;
}

void require_same_weights(RankGroup& ranks, const std::vector<Tensor>& parameters, int64_t step) {
  const std::vector<std::string> sums = ranks.gather(concat(checksum(parameters)));
  std::vector<std::string> others;
  for (int rank = 1; rank < ranks.size(); ++rank)
    if (sums[static_cast<size_t>(rank)] != sums.front()) others.push_back(name_of(ranks, rank));
  if (!others.empty())
    throw Error("ranks", concat("after step ", step, " the weights of ", join(others, ", "), " differ from those of ",
                                name_of(ranks, 0),
                                ". Their processors may compute different results, or a memory is faulty. Resume from "
                                "the last checkpoint without them."));
}

}  // namespace normlab
