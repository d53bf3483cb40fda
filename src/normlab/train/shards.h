// Work of the optimiser shared out over ranks: each parameter is updated by one of them, which alone has its state, and
// sent to the others.
#pragma once

#include <vector>

#include "normlab/ranks/ranks.h"
#include "normlab/train/optimizer.h"

namespace normlab {

class Shards {
 public:
  // Shares out those of the parameters for which `shared` says so, about evenly by their sizes, and says of each
  // whether this rank owns it.
  Shards(RankGroup& ranks, std::vector<Parameter>& parameters, const std::vector<bool>& shared);

  int owner(size_t parameter) const { return owners_[parameter]; }  // -1: every rank updates it

  // After an update: every rank gets what the others have updated.
  void send_weights() const;
  // The state of an optimiser with what the other ranks have of it, for rank 0; the others get nothing.
  NamedTensors whole(const NamedTensors& state) const;

 private:
  RankGroup& ranks_;
  std::vector<Parameter> parameters_;
  std::vector<int> owners_;
};

}  // namespace normlab
