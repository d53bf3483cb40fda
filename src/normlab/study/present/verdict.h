// The verdict of a study: what was found, in words and numbers, and what is missing or doubtful.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/page.h"
#include "normlab/study/analyse/analysis.h"

namespace normlab {

struct Verdict {
  std::string sentence;  // the answer
  std::string detail;    // what else is shown to differ, and how fast it learns; may be empty
  std::vector<KeyFigure> figures;
  std::vector<std::string> notices;
};
Verdict verdict(const StudyResults& results, const Analysis& analysis);

}  // namespace normlab
