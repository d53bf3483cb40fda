#include "normlab/study/present/scaling_report.h"

#include "normlab/base/text.h"
#include "normlab/report/page.h"
#include "normlab/study/analyse/study_text.h"
#include "normlab/study/present/scaling_charts.h"
#include "normlab/study/present/scaling_json.h"
#include "normlab/study/present/scaling_tables.h"
#include "normlab/study/present/scaling_verdict.h"

namespace normlab {
namespace {

// What both the page and the Markdown show, in its order.
struct FitPart {
  std::string title, text;
  std::vector<Figure> figures;
  std::vector<Table> tables;
};

std::vector<FitPart> fit_parts(const ScalingAnalysis& analysis) {
  std::vector<FitPart> parts;
  if (!analysis.schemes.empty()) {
    parts.push_back({"Loss against compute",
                     "Operations of a run are those of its training steps. The frontier follows from the law: at each "
                     "compute, the size with the lowest fitted loss.",
                     frontier_charts(analysis),
                     {coefficient_table(analysis)}});
    if (!analysis.projections.empty()) parts[0].tables.push_back(projection_table(analysis));
    parts.push_back(
        {"Does the law describe the runs?",
         concat("The law is fitted to log loss with the Huber loss, from a full grid of starts. Intervals come from "
                "a bootstrap and assume that the law is correct. ",
                join(bootstrap_texts(analysis), " ")),
         residual_charts(analysis),
         {goodness_table(analysis), run_table(analysis)}});
  }
  if (!analysis.batches.empty())
    parts.push_back({"How large a batch?",
                     "For each batch size the fewest steps to a loss, over its learning rates, fitted with "
                     "S = S_min + T_min / B: the critical batch is T_min / S_min tokens.",
                     batch_charts(analysis),
                     {batch_table(analysis)}});
  return parts;
}

std::string subtitle_of(const ScalingAnalysis& analysis) {
  std::vector<std::string> schemes;
  for (const SchemeFit& each : analysis.schemes)
    schemes.push_back(concat(each.scheme.empty() ? "" : concat(each.scheme, ": "), plural(each.runs.size(), "run")));
  return join(schemes, "; ");
}

std::string make_markdown(const ScalingAnalysis& analysis, const std::vector<FitPart>& parts,
                          const std::string& command) {
  std::string out = concat("# Scaling\n\n", markdown_text(subtitle_of(analysis)), "\n\n**",
                           markdown_text(scaling_verdict(analysis)), "**\n");
  for (const std::string& note : analysis.notes) out += concat("\n> ", markdown_text(note), "\n");
  for (const FitPart& part : parts) {
    out += concat("\n## ", part.title, "\n\n", markdown_text(part.text), "\n");
    for (const Figure& each : part.figures)
      out += concat("\n![", markdown_text(each.caption.title), "](charts/", each.caption.id, ".svg)\n\n",
                    each.caption.note, "\n");
    for (const Table& table : part.tables) out += concat("\n", markdown_text(table.caption), "\n\n", markdown(table));
  }
  out += "\n## Details\n\n";
  for (const std::string& sentence : scaling_findings(analysis)) out += concat("- ", markdown_text(sentence), "\n");
  return out + concat("\n## Repeat it\n\n```\n", command, "\n```\n");
}

}  // namespace

ReportFiles make_scaling_report(const ScalingAnalysis& analysis, const std::vector<std::string>& command) {
  const std::vector<FitPart> parts = fit_parts(analysis);
  Page page{.title = "Scaling",
            .subtitle = subtitle_of(analysis),
            .verdict = scaling_verdict(analysis),
            .detail = {},
            .figures = {},
            .notices = analysis.notes,
            .sections = {},
            .command = join(command, " "),
            .footer = {concat("normlab ", NORMLAB_VERSION)}};
  ReportFiles files;
  for (const FitPart& part : parts) {
    page.sections.push_back({part.title, part.text, {}});
    for (const Figure& each : part.figures) {
      page.sections.back().blocks.push_back(html(each));
      files.emplace_back(concat("charts/", each.caption.id, ".svg"), svg_file(each));
    }
    for (const Table& table : part.tables) page.sections.back().blocks.push_back(html(table));
  }
  if (const auto findings = scaling_findings(analysis); !findings.empty())
    page.sections.push_back({"Details", "", {list(findings)}});
  files.emplace_back("points.csv", csv(run_table(analysis)));
  files.emplace_back("fit.json", scaling_json(analysis));
  files.emplace_back("scaling.md", make_markdown(analysis, parts, join(command, " ")));
  files.emplace_back("scaling.html", render(page));
  return files;
}

}  // namespace normlab
