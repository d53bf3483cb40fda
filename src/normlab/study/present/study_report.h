// The report of a study: report.html, report.md, report.json, summary.csv, trials.csv and charts/*.svg.
#pragma once

#include <string>

#include "normlab/study/analyse/analysis.h"
#include "normlab/study/present/report_parts.h"
#include "normlab/study/present/verdict.h"

namespace normlab {

struct StudyReport {
  Verdict verdict;
  std::string json;  // the content of report.json
  ReportFiles files = {};
};
StudyReport make_report(const StudyResults& results, const Analysis& analysis);
Page report_page(const StudyResults& results, const Analysis& analysis);  // report.html alone, to be rendered

}  // namespace normlab
