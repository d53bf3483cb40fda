// The tables of a study.
#include "normlab/study/present/study_tables.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "normlab/base/text.h"
#include "normlab/report/scale.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

Cell loss_cell(std::optional<double> loss) { return {loss ? fixed(*loss, 4) : dash, loss.value_or(not_a_number)}; }
Cell p_cell(std::optional<double> p) { return {p ? p_text(*p) : dash, p.value_or(not_a_number)}; }
Cell number_or_dash(std::optional<double> value, int digits = 3) {
  return number_cell(value.value_or(not_a_number), digits);
}
Cell difference_cell(std::optional<double> value) { return signed_cell(value.value_or(not_a_number), 4); }

std::string interval_text(const std::optional<Interval>& interval, int least, bool with_sign) {
  if (!interval) return dash;
  const int decimals = with_sign ? interval_decimals(interval->low, interval->high, least) : least;
  const auto shown = [&](double value) {
    return with_sign ? signed_number(value, decimals) : with_minus(fixed(value, decimals));
  };
  return concat(shown(interval->low), " to ", shown(interval->high));
}

std::string row_name(const ChartInput& input, size_t variant) {
  const std::string& label = input.results.plan.variants[variant].label;
  return variant == input.analysis.baseline ? concat(label, " (baseline)") : label;
}

std::string blocks_text(const std::optional<SpeedUp>& speed) {
  if (!speed) return dash;
  return concat(speed->reached(), " of ", speed->ratios.size());
}

Cell factor_cell(const std::optional<SpeedUp>& speed) {
  if (!speed || !speed->factor) return text_cell(dash);
  return {concat(bound_sign(*speed), significant(*speed->factor, 3)), *speed->factor};
}

}  // namespace

Table loss_table(const ChartInput& input) {
  double longest = 0;
  for (const VariantSummary& summary : input.analysis.variants)
    longest = std::max(longest, median_if_any(summary.cpu_seconds).value_or(0));
  const Unit unit = time_unit(longest);
  Table table{
      concat("Validation loss at the end of training, nats per token; means over ", name_of(input.analysis.block), "s"),
      {{"", "variant", Align::left},
       {"trials", "", Align::right},
       {"final loss", "", Align::right, Best::lowest},
       {"std. error", "", Align::right},
       {"best during training", "", Align::right, Best::lowest},
       {"average rank", "", Align::right, Best::lowest},
       {concat("processor time (", unit.name, ")"), "", Align::right}},
      {}};
  for (size_t i = 0; i < input.analysis.variants.size(); ++i) {
    const VariantSummary& summary = input.analysis.variants[i];
    const auto seconds = median_if_any(summary.cpu_seconds);
    table.rows.push_back({text_cell(row_name(input, i)),
                          text_cell(concat(summary.finished, " of ", summary.planned,
                                           summary.diverged > 0 ? concat(", ", summary.diverged, " diverged") : "")),
                          loss_cell(summary.mean), loss_cell(summary.standard_error), loss_cell(summary.mean_best),
                          number_or_dash(summary.average_rank),
                          number_or_dash(seconds ? std::optional(*seconds / unit.divisor) : std::nullopt)});
  }
  return table;
}

Table test_table(const ChartInput& input) {
  Table table{concat("Difference to ", input.results.plan.variants[input.analysis.baseline].label,
                     " in final validation loss; negative is better"),
              {{"", "variant", Align::left},
               {concat(name_of(input.analysis.block), "s"), "", Align::right},
               {"difference", "", Align::right},
               {interval_name(input.analysis), "", Align::right},
               {"adjusted p-value", "", Align::right},
               {"p-value", "", Align::right},
               {"Wilcoxon p-value", "", Align::right}},
              {}};
  for (const Comparison& comparison : input.analysis.comparisons)
    table.rows.push_back({text_cell(input.results.plan.variants[comparison.variant].label),
                          count_cell(comparison.blocks.size()), difference_cell(comparison.mean),
                          text_cell(interval_text(comparison.adjusted, 4, true)), p_cell(comparison.holm_p),
                          p_cell(comparison.t ? std::optional(comparison.t->p_value) : std::nullopt),
                          p_cell(comparison.wilcoxon ? std::optional(comparison.wilcoxon->p_value) : std::nullopt)});
  return table;
}

Table speed_table(const ChartInput& input) {
  const std::string goal =
      input.analysis.target ? concat("a validation loss of ", format_number(*input.analysis.target))
                            : concat("the final loss of ", input.results.plan.variants[input.analysis.baseline].label,
                                     " in the same ", name_of(input.analysis.block));
  Table table{concat("Convergence to ", goal, "; a speed-up above 1 is faster than the baseline"),
              {{"", "variant", Align::left},
               {concat(name_of(input.analysis.block), "s that reach it"), "", Align::right},
               {"steps", "", Align::right, Best::lowest},
               {"speed-up, steps", "", Align::right},
               {interval_name(input.analysis), "", Align::right},
               {"speed-up, time", "", Align::right},
               {interval_name(input.analysis), "", Align::right}},
              {}};
  for (const Comparison& comparison : input.analysis.comparisons) {
    const auto& steps = comparison.in_steps;
    const auto& seconds = comparison.in_seconds;
    const auto& reached = input.analysis.variants[comparison.variant].reached;
    const auto interval = [](const auto& speed) { return speed ? speed->interval : std::nullopt; };
    table.rows.push_back({text_cell(input.results.plan.variants[comparison.variant].label),
                          text_cell(blocks_text(steps)),
                          {reached ? fixed(reached->step, 0) : dash, reached ? reached->step : not_a_number},
                          factor_cell(steps),
                          text_cell(interval_text(interval(steps), 2, false)),
                          factor_cell(seconds),
                          text_cell(interval_text(interval(seconds), 2, false))});
  }
  return table;
}

Table config_table(const ChartInput& input) {
  const Plan& plan = input.results.plan;
  std::vector<Config> configs;
  for (size_t i = 0; i < plan.variants.size(); ++i)
    configs.push_back(std::find_if(plan.trials.begin(), plan.trials.end(), [&](const Trial& trial) {
                        return trial.variant == i;
                      })->config);
  Table table{"How the variants differ", {{"", "variant", Align::left}}, {}};
  for (size_t i = 0; i < configs.size(); ++i) table.rows.push_back({text_cell(row_name(input, i))});
  std::vector<FieldList> lists;
  for (Config& config : configs) lists.push_back(fields(config));
  for (size_t field = 0; field < lists.front().fields().size(); ++field) {
    std::set<std::string> values;
    for (const FieldList& list : lists) values.insert(list.fields()[field].get());
    if (values.size() < 2) continue;
    table.columns.push_back({lists.front().fields()[field].key, "", Align::left});
    for (size_t i = 0; i < lists.size(); ++i) table.rows[i].push_back(text_cell(lists[i].fields()[field].get()));
  }
  return table;
}

}  // namespace normlab
