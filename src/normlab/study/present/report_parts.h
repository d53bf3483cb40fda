// The parts of a report, as the page and the Markdown show them, and its files.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "normlab/report/figure.h"
#include "normlab/report/page.h"
#include "normlab/report/table.h"

namespace normlab {

struct Part {
  std::string title, text;
  std::vector<const Figure*> figures = {};
  std::vector<Table> tables = {};
  std::string after = {};
};

std::vector<Section> sections_of(const std::vector<Part>& parts);
std::string markdown_of(const std::vector<Part>& parts);

std::string unbroken(std::string text);  // lines must not break inside "p = 3" and "95 %"
Html folded(const Table& table);         // a long table is there for those who open it

using ReportFiles = std::vector<std::pair<std::filesystem::path, std::string>>;  // names below a folder, contents
ReportFiles charts_of(const std::vector<Part>& parts);

// Each file that differs is replaced atomically; the page, which shows all the rest, comes last.
void write_report(const std::filesystem::path& folder, const ReportFiles& files);

}  // namespace normlab
