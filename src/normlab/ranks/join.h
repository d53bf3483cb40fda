// Joining the other ranks that mpirun or srun has started.
#pragma once

#include <filesystem>
#include <memory>

#include "normlab/ranks/ranks.h"

namespace normlab {

// As the environment says: 1 for a process started without them.
int ranks_started();

// Null for a process on its own. The module, which calls MPI, is loaded only here: Error when it was not built, or MPI
// is not installed.
std::unique_ptr<RankGroup> join_ranks(const std::filesystem::path& module);

}  // namespace normlab
