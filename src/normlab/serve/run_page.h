// The page of a run: losses and diagnostics.
#pragma once

#include "normlab/serve/inspections.h"
#include "normlab/serve/list_page.h"

namespace normlab {

LivePage run_page(const ServedFolder& folder, const std::filesystem::path& run, Summaries summaries,
                  const HeldLocks& locks, const Inspections& inspections);

}  // namespace normlab
