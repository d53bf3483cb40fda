// The report of a study: report.html, report.md, report.json, summary.csv, trials.csv and charts/*.svg.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "normlab/study/analyse/analysis.h"
#include "normlab/study/present/verdict.h"

namespace normlab {

using ReportFiles = std::vector<std::pair<std::filesystem::path, std::string>>;  // names below a folder, contents

struct StudyReport {
  Verdict verdict;
  std::string json;  // the content of report.json
  ReportFiles files = {};
};
StudyReport make_report(const StudyResults& results, const Analysis& analysis);

// Each file is replaced atomically; the page, which shows all the rest, comes last.
void write_report(const std::filesystem::path& folder, const ReportFiles& files);

}  // namespace normlab
