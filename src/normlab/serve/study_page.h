// The page of a study: its report as far as the study is, with progress and links to its trials.
#pragma once

#include "normlab/serve/list_page.h"
#include "normlab/study/analyse/results.h"

namespace normlab {

LivePage study_page(const ServedFolder& folder, const std::filesystem::path& study, Summaries summaries,
                    const HeldLocks& locks);

// Leaves about `most` evaluations in every curve, at steps that the curves share, with its lowest and its last point:
// what a chart can show, in a fraction of the time.
void thin_curves(StudyResults& results, size_t most);

}  // namespace normlab
