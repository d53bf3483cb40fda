#include "normlab/cli/compare_ranks.h"

#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/ranks/join.h"
#include "normlab/study/run/runner.h"

namespace normlab {
namespace {

// What rank 0 tells the others: the folder of a study to work on, or that it has ended, with its exit code.
constexpr std::string_view work = "work ", end = "end ";

void work_on(const std::filesystem::path& folder, const CompareOptions& options) {
  run_free_trials(folder, {.program = torch_program(), .nice = options.nice, .stop = stop_requested});
}

Exit follow(RankGroup& ranks, const CompareOptions& options) {
  while (true) {
    const std::string told = ranks.gather("").front();
    if (told.starts_with(end)) return static_cast<Exit>(parse_integer(told.substr(end.size())).value_or(1));
    work_on(told.substr(work.size()), options);
    wait_for_all(ranks);
  }
}

}  // namespace

void run_on_ranks(const Plan& plan, StudyProgress& progress, const std::vector<const Trial*>& queue,
                  const CompareOptions& options) {
  for (const Trial* trial : queue) forget_crash(*trial);  // or it would be left alone
  options.ranks->gather(concat(work, std::filesystem::absolute(plan.folder).string()));
  work_on(plan.folder, options);
  wait_for_all(*options.ranks);
  for (const Trial* trial : queue) progress.update(*trial);
}

Exit with_ranks(CompareOptions options, const std::function<Exit(const CompareOptions&)>& lead) {
  if (ranks_started() < 2) return lead(options);
  const std::unique_ptr<RankGroup> ranks = join_ranks(torch_program().parent_path() / "normlab-mpi.so");
  try {
    if (options.jobs != 0)
      throw UsageError("--jobs", concat("got ", options.jobs, ", but each of the ", ranks->size(),
                                        " ranks runs one trial at a time. Leave it out."));
    quiet_barriers();
    if (ranks->rank() > 0) return follow(*ranks, options);
    options.ranks = ranks.get();
    options.jobs = ranks->size();
    const Exit exit = lead(options);
    ranks->gather(concat(end, static_cast<int>(exit)));
    return exit;
  } catch (const Error& error) {
    ranks->fail(error.what(), static_cast<int>(error.code()));
  } catch (const std::exception& error) {
    ranks->fail(error.what(), static_cast<int>(Exit::failed));
  }
  throw Error("compare", "the ranks were ended.");  // not reached
}

}  // namespace normlab
