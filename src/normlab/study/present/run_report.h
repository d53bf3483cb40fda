// The report of runs beside each other: curves, settings that differ, and no claim that single runs cannot support.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/analyse/run_comparison.h"
#include "normlab/study/present/report_parts.h"

namespace normlab {

struct RunReport {
  std::string sentence, detail;      // what the runs show
  std::vector<std::string> notices;  // what makes them incomparable, unfinished or unreadable
  Table losses, settings;            // one row per run; one row per key that differs
  std::string json;                  // the content of report.json
  ReportFiles files = {};            // report.html, report.md, report.json, runs.csv and charts/*.svg
};
RunReport make_run_report(const RunComparison& runs, const std::string& command);

}  // namespace normlab
