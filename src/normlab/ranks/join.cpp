#include "normlab/ranks/join.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  const auto number = text ? parse_integer(text) : std::nullopt;
  return number && *number >= 0 && *number < 1'000'000 ? static_cast<int>(*number) : otherwise;
}

// Open MPI's mpirun; MPICH's and Slurm's PMI; a job step of Slurm. Not SLURM_NTASKS: a batch script has it too.
constexpr const char* size_variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};

[[noreturn]] void refuse(const std::string& why) {
  throw Error("mpi",
              concat(ranks_started(), " processes were started together, but ", why,
                     ". On Debian: apt install libopenmpi-dev openmpi-bin, then `make build` again; or start one "
                     "process."));
}

}  // namespace

int ranks_started() {
  for (const char* variable : size_variables)
    if (const int size = number_in(variable, 0); size > 0) return size;
  return 1;
}

std::unique_ptr<RankGroup> join_ranks(const fs::path& module) {
  if (ranks_started() < 2) return nullptr;
  if (!fs::exists(module)) refuse(concat("this normlab was built without MPI: there is no ", module.string()));
  // Global, for the modules that MPI itself loads.
  void* library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) refuse(concat("MPI cannot be loaded: ", ::dlerror()));
  using Open = RankGroup* (*)(std::string & problem);
  const auto open = reinterpret_cast<Open>(::dlsym(library, "normlab_open_ranks"));
  if (!open) refuse(concat(module.string(), " is of another version"));
  std::string problem;
  std::unique_ptr<RankGroup> ranks(open(problem));
  if (!ranks) refuse(problem);
  return ranks;
}

std::vector<double> sum(RankGroup& ranks, const std::vector<double>& values) {
  const std::string mine(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  std::vector<double> total(values.size(), 0.0);
  for (const std::string& bytes : ranks.gather(mine)) {
    std::vector<double> theirs(values.size());
    std::memcpy(theirs.data(), bytes.data(), std::min(bytes.size(), theirs.size() * sizeof(double)));
    for (size_t i = 0; i < total.size(); ++i) total[i] += theirs[i];
  }
  return total;
}

bool any(RankGroup& ranks, bool mine) { return sum(ranks, {mine ? 1.0 : 0.0}).front() > 0.0; }

void wait_for_all(RankGroup& ranks) { ranks.gather(""); }

std::string name_of(const RankGroup& ranks, int rank) { return concat("rank ", rank, " on ", ranks.host(rank)); }

int place_on_host(const RankGroup& ranks) {
  int before = 0;
  for (int rank = 0; rank < ranks.rank(); ++rank) before += ranks.host(rank) == ranks.host(ranks.rank());
  return before;
}

}  // namespace normlab
