#include "normlab/cli/torch/with_ranks.h"

#include <filesystem>
#include <memory>

#include "normlab/ranks/join.h"

namespace normlab {

Exit with_ranks(const std::function<Exit(RankGroup*)>& work) {
  const std::unique_ptr<RankGroup> ranks =
      join_ranks(std::filesystem::read_symlink("/proc/self/exe").parent_path() / "normlab-mpi.so");
  if (!ranks) return work(nullptr);
  try {
    return work(ranks.get());
  } catch (const Error& error) {
    if (error.code() == Exit::diverged) throw;  // all ranks have ended
    ranks->fail(error.what(), static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    ranks->fail(error.what(), static_cast<int>(Exit::failed));
  }
  throw Error("ranks", "they were ended.");  // not reached
}

}  // namespace normlab
