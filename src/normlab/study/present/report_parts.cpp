#include "normlab/study/present/report_parts.h"

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"

namespace normlab {

std::vector<Section> sections_of(const std::vector<Part>& parts) {
  std::vector<Section> sections;
  for (const Part& part : parts) {
    sections.push_back({part.title, unbroken(part.text), {}});
    auto& blocks = sections.back().blocks;
    for (const Figure* each : part.figures) blocks.push_back(html(*each));
    for (const Table& table : part.tables) blocks.push_back(folded(table));
    if (!part.after.empty()) blocks.push_back(paragraph(unbroken(part.after)));
  }
  return sections;
}

std::string markdown_of(const std::vector<Part>& parts) {
  std::string out;
  for (const Part& part : parts) {
    out += concat("\n## ", markdown_text(part.title), "\n");
    if (!part.text.empty()) out += concat("\n", markdown_text(part.text), "\n");
    for (const Figure* each : part.figures)
      out += concat("\n![", markdown_text(each->caption.title), "](charts/", each->caption.id, ".svg)\n\n",
                    each->caption.note, "\n");
    for (const Table& table : part.tables) out += concat("\n", markdown_text(table.caption), "\n\n", markdown(table));
    if (!part.after.empty()) out += concat("\n", markdown_text(part.after), "\n");
  }
  return out;
}

std::string unbroken(std::string text) {
  for (const char* part : {" = ", " \xC2\xB1 ", " nats", " %", " folds", " seeds"})
    text = replace_all(std::move(text), part, replace_all(part, " ", "\xC2\xA0"));
  return text;
}

Html folded(const Table& table) {
  constexpr size_t longest = 12;
  return table.rows.size() > longest ? collapsed(table.caption, html(table)) : html(table);
}

ReportFiles charts_of(const std::vector<Part>& parts) {
  ReportFiles files;
  for (const Part& part : parts)
    for (const Figure* each : part.figures)
      files.emplace_back(concat("charts/", each->caption.id, ".svg"), svg_file(*each));
  return files;
}

void write_report(const std::filesystem::path& folder, const ReportFiles& files) {
  std::error_code problem;
  std::filesystem::create_directories(folder / "charts", problem);
  if (problem) throw Error((folder / "charts").string(), concat("cannot create the folder: ", problem.message(), "."));
  for (const auto& [name, content] : files) {
    const std::filesystem::path path = folder / name;
    // The same results give the same bytes: a study that is run again changes nothing.
    if (std::filesystem::is_regular_file(path, problem) && read_file(path) == content) continue;
    write_file_atomically(path, content);
  }
}

}  // namespace normlab
