// Verbs of normlab-torch that run on the ranks of mpirun.
#pragma once

#include <functional>

#include "normlab/base/error.h"
#include "normlab/ranks/ranks.h"

namespace normlab {

// With the ranks that mpirun has started, or null for a process on its own. What a rank throws ends all of them.
Exit with_ranks(const std::function<Exit(RankGroup*)>& work);

}  // namespace normlab
