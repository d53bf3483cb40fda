// The report of a study: puts verdict, charts and tables together.
#include "normlab/study/present/study_report.h"

#include <cmath>

#include "normlab/base/text.h"
#include "normlab/study/analyse/study_text.h"
#include "normlab/study/present/bleu_report.h"
#include "normlab/study/present/gain_charts.h"
#include "normlab/study/present/result_charts.h"
#include "normlab/study/present/stability_charts.h"
#include "normlab/study/present/study_csv.h"
#include "normlab/study/present/study_json.h"
#include "normlab/study/present/study_tables.h"
#include "normlab/study/present/tuning_report.h"

namespace normlab {
namespace {

struct Charts {
  Figure loss, differences, time, blocks;
  std::vector<Figure> gains, groups, stability;
  std::optional<Figure> map, bleu, tuning;
};
Charts draw_charts(const ChartInput& input, const std::vector<Group>& groups) {
  return {.loss = loss_chart(input),
          .differences = difference_chart(input),
          .time = time_chart(input),
          .blocks = block_panels(input),
          .gains = gain_charts(input),
          .groups = group_charts(input, groups),
          .stability = stability_charts(input),
          .map = loss_map(input),
          .bleu = bleu_chart(input),
          .tuning = tuning_chart(input)};
}

std::string friedman_text(const ChartInput& input) {
  const Analysis& analysis = input.analysis;
  if (!analysis.friedman)
    return concat("The Friedman test over all variants needs two ", name_of(analysis.block),
                  "s that every variant has finished.");
  const FriedmanTest& test = *analysis.friedman;
  return concat(
      "Friedman test that all ", analysis.ranked.size(), " variants rank equally over ", analysis.ranked_blocks, " ",
      name_of(analysis.block),
      "s: Iman and Davenport's F = ", std::isfinite(test.f) ? significant(test.f, 3) : "infinite", ", p-value ",
      p_text(test.f_p_value), ". Average ranks that differ by ",
      significant(nemenyi_critical_difference(analysis.ranked.size(), analysis.ranked_blocks), 3),
      " or more are significantly different at 95 % over all pairs (Nemenyi).",
      analysis.block == BlockKind::fold
          ? " Both assume independent folds, but folds share most of their training text: this p-value is too small "
            "and this distance too short. They are a second opinion, not the verdict."
          : "");
}

constexpr const char* tests_over_seeds =
    "Each trial is compared with the baseline's trial on the same seed. Interval and p-value come from the paired "
    "t-test; "
    "Holm's correction adjusts both for the number of comparisons: an interval excludes 0 exactly where the adjusted "
    "p-value is at most 0.05. All trials share one fold, so other validation text is not covered.";
constexpr const char* tests_over_folds =
    "Each trial is compared with the baseline's trial on the same fold and seed. Folds share most of their training "
    "text, so interval and p-value come from the corrected resampled t-test (Nadeau and Bengio); Holm's correction "
    "adjusts both for the number of comparisons: an interval excludes 0 exactly where the adjusted p-value is at most "
    "0.05. Wilcoxon's "
    "exact test ignores what folds share: it is a second opinion, not the verdict.";

Part group_part(const ChartInput& input, const std::vector<Group>& groups, const Charts& charts) {
  Part part{concat("Within each ", input.grid.dimensions[1 - input.styles.series].name), ""};
  std::vector<std::string> sentences;
  for (const Group& group : groups) sentences.push_back(verdict(input.results, group.analysis).sentence);
  part.text = join(sentences, " ");
  for (const Figure& each : charts.groups) part.figures.push_back(&each);
  return part;
}

std::vector<Part> parts_of(const ChartInput& input, const std::vector<Group>& groups, const Charts& charts) {
  std::vector<Part> parts = {{"Which ends lowest?", "", {&charts.loss}, {loss_table(input)}},
                             {"Is it chance?",
                              input.analysis.block == BlockKind::fold ? tests_over_folds : tests_over_seeds,
                              {&charts.differences},
                              {test_table(input)}}};
  parts[1].after = friedman_text(input);
  if (charts.map) parts[0].figures.push_back(&*charts.map);
  if (charts.bleu)
    parts.insert(parts.begin(), {"Which translates best?", bleu_text, {&*charts.bleu}, bleu_tables(input)});
  if (!groups.empty()) parts.push_back(group_part(input, groups, charts));
  parts.push_back(
      {"How fast does it converge?",
       "Steps and processor time until the curve, linear between evaluations, first reaches the target. A "
       "factor is the geometric mean over all pairs, its interval that of the same t-test on logarithms, at the level "
       "of the comparison above. A variant that does not reach the target counts as not faster, with a ratio of at "
       "most "
       "1; the factor is then a bound and has no interval.",
       {},
       {speed_table(input)}});
  parts.push_back({"What does it cost?", "", {&charts.time}});
  parts.push_back({concat("Does it hold in every ", name_of(input.analysis.block), "?"), "", {&charts.blocks}});
  if (!charts.stability.empty())
    parts.push_back(
        {"How stable is it?",
         "Largest logits and entropies are those of the probes; normlab config explain metrics defines them."});
  for (const Figure& each : charts.stability) parts.back().figures.push_back(&each);
  if (!charts.gains.empty()) parts.push_back({"What the gains learn", ""});
  for (const Figure& each : charts.gains) parts.back().figures.push_back(&each);
  if (charts.tuning)
    parts.push_back({"How was each variant tuned?", tuning_text(input), {&*charts.tuning}, {tuning_table(input)}});
  return parts;
}

Section setup_section(const ChartInput& input) {
  const Table differences = config_table(input);
  Section section{"Set-up", "", {}};
  if (differences.columns.size() == 2)
    section.text = concat("The variants differ in ", differences.columns[1].title, " only.");
  else
    section.blocks.push_back(folded(differences));
  section.blocks.push_back(collapsed("study.toml", code_block(to_toml(input.results.plan.spec))));
  section.blocks.push_back(collapsed("All trials", html(trial_table(input))));
  return section;
}

Page make_page(const ChartInput& input, const std::vector<Part>& parts, const Verdict& verdict) {
  Page page{.title = title_of(input.results.plan),
            .subtitle = subtitle_of(input.results),
            .setup = setup_text(input.results),
            .verdict = unbroken(verdict.sentence),
            .detail = unbroken(verdict.detail),
            .figures = verdict.figures,
            .notices = verdict.notices,
            .sections = {},
            .command = commands(input.results, input.analysis),
            .footer = provenance_lines(input.results.provenance)};
  page.sections = sections_of(parts);
  page.sections.push_back(setup_section(input));
  return page;
}

std::string make_markdown(const ChartInput& input, const std::vector<Part>& parts, const Verdict& verdict) {
  std::string out =
      concat("# ", markdown_text(title_of(input.results.plan)), "\n\n", subtitle_of(input.results), "\n\n",
             markdown_text(setup_text(input.results)), "\n\n**", markdown_text(verdict.sentence), "**\n");
  if (!verdict.detail.empty()) out += concat("\n", markdown_text(verdict.detail), "\n");
  for (const std::string& notice : verdict.notices) out += concat("\n> ", markdown_text(notice), "\n");
  out += markdown_of(parts);
  out += concat("\n## Set-up\n\n", markdown(config_table(input)), "\n## Repeat it\n\n```\n",
                commands(input.results, input.analysis), "\n```\n");
  for (const std::string& line : provenance_lines(input.results.provenance))
    out += concat("\n", markdown_text(line), "\n");
  return out;
}

// Everything that the page and the files are made of; the members refer to each other.
struct Material {
  Material(const StudyResults& results, const Analysis& analysis)
      : grid(grid_of(results.plan)),
        styles(styles_of(grid, analysis.baseline)),
        input{results, analysis, grid, styles},
        groups(groups_of(results, grid, styles, analysis)),
        charts(draw_charts(input, groups)),
        parts(parts_of(input, groups, charts)),
        found(verdict(results, analysis)) {
    for (std::string& notice : tuning_notices(results)) found.notices.push_back(std::move(notice));
  }
  Material(const Material&) = delete;

  const Grid grid;
  const GridStyles styles;
  const ChartInput input;
  const std::vector<Group> groups;
  const Charts charts;
  const std::vector<Part> parts;
  Verdict found;
};

}  // namespace

Page report_page(const StudyResults& results, const Analysis& analysis) {
  const Material made(results, analysis);
  return make_page(made.input, made.parts, made.found);
}

StudyReport make_report(const StudyResults& results, const Analysis& analysis) {
  const Material made(results, analysis);
  StudyReport report{.verdict = made.found, .json = make_json(made.input, made.groups, made.found)};
  report.files = charts_of(made.parts);
  report.files.emplace_back("summary.csv", csv(summary_table(made.input)));
  report.files.emplace_back("trials.csv", csv(trial_table(made.input)));
  report.files.emplace_back("report.json", report.json);
  report.files.emplace_back("report.md", make_markdown(made.input, made.parts, made.found));
  report.files.emplace_back("report.html", render(make_page(made.input, made.parts, made.found)));
  return report;
}

}  // namespace normlab
