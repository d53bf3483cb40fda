// Where a training step records the largest logit of every head, for QK-clip.
#pragma once

#include <vector>

#include "normlab/ops/attention.h"
#include "normlab/record/place.h"

namespace normlab {

class LogitMaxima {
 public:
  LogitMaxima() = default;  // records nothing
  LogitMaxima(size_t deepest_stack, int64_t n_heads) : layers_(deepest_stack) {
    for (size_t i = 0; i < std::size(all_stacks) * layers_; ++i) maxima_.emplace_back(n_heads);
  }

  // Null where nothing is recorded.
  MaxLogits* at(Place place) {
    if (maxima_.empty()) return nullptr;
    return &maxima_[static_cast<size_t>(place.stack) * layers_ + static_cast<size_t>(place.layer)];
  }
  // Of every head, for ranks to exchange.
  std::vector<float> values() const {
    std::vector<float> all;
    for (const MaxLogits& each : maxima_)
      for (size_t head = 0; head < each.heads(); ++head) all.push_back(each.of(head));
    return all;
  }
  void add(const std::vector<float>& values) {
    size_t i = 0;
    for (MaxLogits& each : maxima_)
      for (size_t head = 0; head < each.heads(); ++head) each.add(head, values[i++]);
  }
  void reset() noexcept {
    for (MaxLogits& each : maxima_) each.reset();
  }

 private:
  size_t layers_ = 0;
  std::vector<MaxLogits> maxima_;  // [stack, layer]
};

}  // namespace normlab
