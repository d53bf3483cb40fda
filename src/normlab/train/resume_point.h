// Where a run resumes.
#pragma once

#include "normlab/record/run_dir.h"

namespace normlab {

// Makes the newest checkpoint that is whole, and whose rows are in metrics.jsonl, the latest one: newer ones are
// renamed to damaged-step-... or unlogged-step-..., and a warning says so. DataError, and nothing is changed, when
// there are checkpoints but none of them will do. A run without metrics.jsonl resumes without its rows.
void settle_resume_point(RunDir& run);

}  // namespace normlab
