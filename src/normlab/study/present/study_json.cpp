// report.json.
#include "normlab/study/present/study_json.h"

#include <nlohmann/json.hpp>

#include "normlab/base/text.h"
#include "normlab/study/analyse/study_text.h"
#include "normlab/study/present/stability_charts.h"
#include "normlab/study/present/study_csv.h"
#include "normlab/study/present/study_tables.h"
#include "normlab/study/present/tuning_report.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

Json friedman_json(const Analysis& analysis) {
  if (!analysis.friedman) return nullptr;
  const FriedmanTest& test = *analysis.friedman;
  return {{"blocks", analysis.ranked_blocks}, {"variants", analysis.ranked.size()},
          {"chi_square", test.chi_square},    {"df", test.df},
          {"p_value", test.p_value},          {"f_p_value", test.f_p_value}};
}

Json differences_json(const ChartInput& input) {
  Json all = Json::object();
  for (const Comparison& comparison : input.analysis.comparisons) {
    Json& blocks = all[input.results.plan.variants[comparison.variant].label] = Json::object();
    for (size_t i = 0; i < comparison.blocks.size(); ++i)
      blocks[concat(comparison.blocks[i])] = comparison.differences[i];
  }
  return all;
}

Json groups_json(const ChartInput& input, const std::vector<Group>& groups) {
  Json all = Json::array();
  for (const Group& group : groups) {
    const ChartInput within{input.results, group.analysis, input.grid, input.styles};
    all.push_back({{"group", group.label},
                   {"verdict", verdict(input.results, group.analysis).sentence},
                   {"tests", Json::parse(json(test_table(within)))}});
  }
  return all;
}

Json sensitivity_json(const ChartInput& input) {
  Json all = Json::object();
  for (const Sensitivity& each : sensitivities(input.results, input.grid)) all[each.label] = each.values;
  return all;
}

Json tuning_json(const ChartInput& input) {
  const StudyResults& results = input.results;
  if (!results.plan.spec.tune.wanted()) return nullptr;
  return {{"key", results.plan.spec.tune.key},
          {"seed", results.plan.spec.tune.seed},
          {"trials", results.tuning_trials},
          {"cpu_seconds", results.tuning_cpu_seconds},
          {"variants", Json::parse(json(tuning_table(input)))}};
}

}  // namespace

std::string make_json(const ChartInput& input, const std::vector<Group>& groups, const Verdict& verdict) {
  const Analysis& analysis = input.analysis;
  const Plan& plan = input.results.plan;
  const Json all = {{"title", title_of(plan)},
                    {"progress", progress_text(input.results)},
                    {"verdict", verdict.sentence},
                    {"detail", verdict.detail},
                    {"notices", verdict.notices},
                    {"baseline", plan.variants[analysis.baseline].label},
                    {"target_loss", analysis.target ? Json(*analysis.target) : Json(nullptr)},
                    {"test_train_ratio", analysis.test_train_ratio},
                    {"variants", Json::parse(json(summary_table(input)))},
                    {"block", name_of(analysis.block)},
                    {"differences_by_block", differences_json(input)},
                    {"friedman", friedman_json(analysis)},
                    {"groups", groups_json(input, groups)},
                    {"learning_rate_sensitivity", sensitivity_json(input)},
                    {"tuning", tuning_json(input)},
                    {"trials", Json::parse(json(trial_table(input)))},
                    {"command", commands(input.results, input.analysis)},
                    {"provenance", provenance_lines(input.results.provenance)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace normlab
