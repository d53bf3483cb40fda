// The files of a report, their tables, and that text of users is escaped.
#include "normlab/study/present/study_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "sandbox.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;

const std::string two_p = "p = [2, 3]\n[data]\nfold = [0, 1, 2]\n[study]\ntitle = \"<b>&\"\n";

StudyResults with_times(double factor) {
  StudyResults results = sample_results(sample_plan(two_p), [](size_t variant, int fold, int64_t) {
    return 2 + 0.1 * fold - 0.02 * static_cast<double>(variant) * (1 + 0.1 * fold);
  });
  for (TrialResult& trial : results.trials) {
    trial.gains = {{0, 10.5}, {1, 9.25}};
    for (EvalPoint& point : trial.curve) point.cpu_seconds *= factor, point.wall_seconds *= factor;
  }
  return results;
}

StudyReport report_of(const StudyResults& results) { return make_report(results, analyse(results)); }

std::string file_of(const StudyReport& report, const std::string& name) {
  for (const auto& [path, content] : report.files)
    if (path == name) return content;
  ADD_FAILURE() << name << " is missing";
  return "";
}

// The columns before the first of times.
std::string timeless(const std::string& csv, const std::string& first_of_times) {
  const auto lines = split(replace_all(csv, "\r", ""), '\n');
  const auto titles = split(lines[0], ',');
  const auto end = std::find(titles.begin(), titles.end(), first_of_times) - titles.begin();
  EXPECT_LT(end, static_cast<long>(titles.size()));
  std::string out;
  for (const std::string& line : lines) {
    auto fields = split(line, ',');
    fields.resize(std::min(fields.size(), static_cast<size_t>(end)));
    out += join(fields, ",") + "\n";
  }
  return out;
}

TEST(StudyReport, HasEveryFile) {
  std::vector<std::string> names;
  for (const auto& [path, content] : report_of(with_times(1)).files) names.push_back(path.string());
  EXPECT_THAT(names, UnorderedElementsAre("charts/loss.svg", "charts/differences.svg", "charts/time.svg",
                                          "charts/folds.svg", "charts/gains.svg", "summary.csv", "trials.csv",
                                          "report.json", "report.md", "report.html"));
}

TEST(StudyReport, OnlyTheLastColumnsDependOnTimes) {
  const StudyReport slow = report_of(with_times(3)), fast = report_of(with_times(1));
  for (const auto& [file, column] :
       {std::pair("summary.csv", "median_cpu_seconds"), std::pair("trials.csv", "cpu_seconds")}) {
    EXPECT_NE(file_of(slow, file), file_of(fast, file));
    EXPECT_EQ(timeless(file_of(slow, file), column), timeless(file_of(fast, file), column));
  }
}

TEST(StudyReport, TablesAgreeWithTheAnalysis) {
  const StudyReport report = report_of(with_times(1));
  const auto json = nlohmann::json::parse(report.json);
  EXPECT_EQ(json["baseline"], "p = 2");
  ASSERT_EQ(json["variants"].size(), 2u);
  EXPECT_NEAR(json["variants"][1]["difference"], -0.022, 1e-12);
  EXPECT_EQ(json["variants"][1]["p"], 3);
  EXPECT_TRUE(json["variants"][0]["difference"].is_null());
  EXPECT_NEAR(json["differences_by_block"]["p = 3"]["2"], -0.024, 1e-12);
  ASSERT_EQ(json["trials"].size(), 6u);
  EXPECT_EQ(json["trials"][0]["gain_layer_1"], 9.25);
  EXPECT_EQ(json["trials"][5]["fold"], 2);
  EXPECT_THAT(file_of(report, "report.md"), HasSubstr("![Validation loss during training](charts/loss.svg)"));
}

TEST(StudyReport, SaysWhatRestsOnIndependentFolds) {
  const std::string page = file_of(report_of(with_times(1)), "report.md");
  EXPECT_THAT(page, HasSubstr("(Nemenyi). Both assume independent folds, but folds share most of their training text"));
  const Plan seeds = sample_plan("p = [2, 3]\n[data]\nfold = 3\n[train]\nseed = [1, 2, 3]\n");
  const StudyReport by_seed = report_of(sample_results(seeds, [](size_t variant, int, int64_t seed) {
    return 2 + 0.01 * static_cast<double>(variant) * static_cast<double>(seed);
  }));
  EXPECT_THAT(file_of(by_seed, "report.md"), Not(HasSubstr("independent folds")));
}

TEST(StudyReport, SummaryHasAdjustedIntervalsAndFoldsThatReach) {
  const auto json = nlohmann::json::parse(report_of(with_times(1)).json);
  const auto& row = json["variants"][1];
  EXPECT_LE(row["adjusted_low"], row["interval_low"]);
  EXPECT_EQ(row["adjusted_low"] > 0 || row["adjusted_high"] < 0, row["holm_p_value"] <= 0.05);
  EXPECT_DOUBLE_EQ(row["adjusted_level"], 0.95);  // one comparison
  EXPECT_EQ(row["target_blocks"], 3);
  EXPECT_EQ(row["reached_blocks"], 3);
}

TEST(StudyReport, TheSetUpIsVisibleAndTheFirstChartShowsTheWholeRun) {
  StudyResults results = with_times(1);
  results.provenance.machines = {"a machine of 2 cores"};
  for (TrialResult& trial : results.trials) trial.record.parameters = 10700000;
  const StudyReport report = report_of(results);
  const std::string line =
      "scheme lp; 6 layers of width 384, 10.7M parameters; 5000 steps of 16.4k tokens; tinyshakespeare by characters; "
      "a machine of 2 cores.";
  EXPECT_THAT(file_of(report, "report.html"), HasSubstr(concat("<p class=\"setup\">", line)));
  EXPECT_THAT(file_of(report, "report.md"), HasSubstr(line));
  const std::string page = file_of(report, "report.html");
  EXPECT_LT(page.find(">whole run<"), page.find(">second half<"));
  EXPECT_NE(page.find(">second half<"), std::string::npos);
}

TEST(StudyReport, UserTextIsEscaped) {
  const StudyReport report = report_of(with_times(1));
  EXPECT_THAT(file_of(report, "report.html"), HasSubstr("&lt;b&gt;&amp;"));
  EXPECT_THAT(file_of(report, "report.html"), Not(HasSubstr("<b>&")));
  EXPECT_THAT(file_of(report, "report.md"), HasSubstr("# \\<b\\>&\n"));
}

TEST(StudyReport, GridHasAMapAndGroups) {
  const Plan plan = sample_plan("p = [1, 2, 3]\ngain_init = [\"1\", \"matched\"]\n[data]\nfold = [0, 1]\n");
  const StudyReport report = report_of(sample_results(plan, [](size_t variant, int fold, int64_t) {
    return 2 + 0.1 * fold + 0.01 * static_cast<double>(variant) * (1 + 0.1 * fold);
  }));
  std::vector<std::string> names;
  for (const auto& [path, content] : report.files) names.push_back(path.string());
  EXPECT_THAT(names, IsSupersetOf({"charts/grid.svg", "charts/differences-1.svg", "charts/differences-2.svg"}));
  EXPECT_THAT(names, Not(Contains("charts/gains.svg")));  // none was learned
  EXPECT_EQ(nlohmann::json::parse(report.json)["groups"][1]["group"], "gain_init = matched");
}

TEST(StudyReport, NothingFinishedIsStillAReport) {
  StudyResults results = with_times(1);
  for (TrialResult& trial : results.trials) trial = {.variant = trial.variant, .fold = trial.fold, .seed = trial.seed};
  EXPECT_THAT(file_of(report_of(results), "report.html"), HasSubstr("No trial has finished yet"));
}

TEST(StudyReport, IsWritten) {
  TemporaryFolder folder;
  const StudyReport report = report_of(with_times(1));
  write_report(folder.path(), report.files);
  for (const auto& [name, content] : report.files) EXPECT_EQ(read_file(folder / name), content);
}

}  // namespace
}  // namespace normlab
