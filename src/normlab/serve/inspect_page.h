// The address of a run's attention: its inspect.html, what was computed on request, or how to get it.
#pragma once

#include "normlab/report/page.h"
#include "normlab/serve/answer.h"
#include "normlab/serve/inspections.h"
#include "normlab/serve/served_folder.h"

namespace normlab {

// inspect.html of the run, if it has one in this folder.
bool has_inspect_page(const ServedFolder& folder, const std::filesystem::path& run);
// Whether the button is shown and counts: without such a page, for checkpoints that are in this folder, as a link could
// lead anywhere.
bool may_inspect(const ServedFolder& folder, const std::filesystem::path& run, const Inspections& inspections);

Answer inspect_answer(const ServedFolder& folder, const std::filesystem::path& run, const Inspections& inspections);

}  // namespace normlab
