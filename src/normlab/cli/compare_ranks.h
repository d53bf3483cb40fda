// normlab compare under mpirun or srun: rank 0 prepares the study and reports it, all ranks run its trials.
#pragma once

#include "normlab/cli/compare.h"
#include "normlab/ranks/ranks.h"

namespace normlab {

// On rank 0: every rank runs trials of the study, each the next that is free, until all of the queue have ended.
void run_on_ranks(const Plan& plan, StudyProgress& progress, const std::vector<const Trial*>& queue,
                  const CompareOptions& options);

// `lead` on rank 0, with the ranks in the options; the others run what it asks for. Without ranks just `lead`.
Exit with_ranks(CompareOptions options, const std::function<Exit(const CompareOptions&)>& lead);

}  // namespace normlab
