// normlab report: what a study found, as a page, tables and charts.
#include <cmath>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"
#include "normlab/study/present/study_report.h"

namespace normlab {
namespace {

std::optional<double> target_of(const ReportOptions& options, const Plan& plan) {
  if (options.target.empty()) {
    const double configured = plan.spec.study.target_loss;
    return configured > 0 ? std::optional(configured) : std::nullopt;
  }
  const auto target = parse_number(options.target);
  if (!target || !(*target > 0) || !std::isfinite(*target))
    throw UsageError("--target", concat("got '", options.target, "', expected a loss, such as 1.6."));
  return target;
}

}  // namespace

void print_report_place(const std::filesystem::path& folder) {
  const std::filesystem::path page = folder / "report.html";
  print_line(concat("\nreport: ", page.string(), "\n        file://",
                    std::filesystem::absolute(page).lexically_normal().string()));
}

Exit report_study(const ReportOptions& options) {
  const Plan plan = load_plan(options.study);
  const StudyResults results = load_results(plan);
  const Analysis analysis = analyse(results, {.baseline = options.baseline, .target = target_of(options, plan)});
  const StudyReport report = make_report(results, analysis);
  write_report(plan.folder, report.files);
  if (options.json) {
    write_output(trim(report.json) + "\n");
    return Exit::done;
  }
  print_wrapped(report.verdict.sentence);
  if (!report.verdict.detail.empty()) print_wrapped(report.verdict.detail);
  for (const std::string& notice : report.verdict.notices) print_wrapped(concat("note: ", notice));
  print_report_place(plan.folder);
  print_line(
      concat("tables: ", (plan.folder / "summary.csv").string(), ", trials.csv, report.md, report.json; charts/"));
  return Exit::done;
}

void add_report(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("report", "verdict, page, tables and charts of a study, finished or not");
  auto options = std::make_shared<ReportOptions>();
  verb->add_option("study", options->study, "folder of `normlab compare`")->required()->type_name("DIR");
  verb->add_option("--baseline", options->baseline, "compare with this variant; default: the study's")
      ->type_name("LABEL");
  verb->add_option("--target", options->target,
                   "measure speed to this validation loss; default: the study's, else the baseline's final loss")
      ->type_name("LOSS");
  verb->add_flag("--json", options->json, "print the analysis, as in report.json");
  verb->footer(
      "Writes report.html, report.md, report.json, summary.csv, trials.csv and charts/*.svg into DIR.\n"
      "Examples:\n"
      "  normlab report runs/lp-quick\n"
      "  normlab report runs/lp-quick --baseline 'p = 3' --target 1.6");
  verb->callback([options, &exit] { exit = report_study(*options); });
}

}  // namespace normlab
