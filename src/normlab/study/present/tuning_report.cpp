#include "normlab/study/present/tuning_report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "normlab/base/text.h"
#include "normlab/report/scatter_chart.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

std::string short_key(const StudyResults& results) {
  const std::string& key = results.plan.spec.tune.key;
  return key.substr(key.find('.') + 1);
}

// Every value that some variant was tuned with, ascending.
std::vector<double> all_values(const StudyResults& results) {
  std::set<double> values;
  for (const TunedVariant& tuned : results.plan.tuned)
    for (const std::string& value : tuned.values) values.insert(*parse_number(value));
  return {values.begin(), values.end()};
}

Cell loss_at(const TunedVariant& tuned, double value) {
  for (size_t i = 0; i < tuned.values.size(); ++i)
    if (*parse_number(tuned.values[i]) == value && !std::isnan(tuned.losses[i]))
      return std::isinf(tuned.losses[i]) ? Cell{"diverged", tuned.losses[i]}
                                         : Cell{fixed(tuned.losses[i], 4), tuned.losses[i]};
  return number_cell(not_a_number);
}

}  // namespace

std::optional<Figure> tuning_chart(const ChartInput& input) {
  const Plan& plan = input.results.plan;
  ScatterChart chart{{"tuning", concat("Tuning: final loss against ", short_key(input.results)),
                      concat("One trial per value and variant, at full length, on seed ", plan.spec.tune.seed,
                             ", which the study itself does not use."),
                      "The final validation loss for each tuned value, one line per variant."},
                     short_key(input.results),
                     "validation loss (nats per token)",
                     {},
                     true};
  for (size_t v = 0; v < plan.tuned.size(); ++v) {
    ScatterSeries series{.label = plan.variants[v].label, .style = input.styles.variants[v], .x = {}, .y = {}};
    for (size_t i = 0; i < plan.tuned[v].values.size(); ++i)
      if (i < plan.tuned[v].losses.size() && std::isfinite(plan.tuned[v].losses[i])) {
        series.x.push_back(*parse_number(plan.tuned[v].values[i]));
        series.y.push_back(plan.tuned[v].losses[i]);
      }
    series.line_x = series.x, series.line_y = series.y;
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  return chart.series.empty() ? std::nullopt : std::optional(figure(chart));
}

Table tuning_table(const ChartInput& input) {
  const Plan& plan = input.results.plan;
  Table table{concat("Final validation loss of the tuning trials, by ", plan.spec.tune.key),
              {{"", "variant", Align::left}, {"chosen", "chosen"}},
              {}};
  const std::vector<double> values = all_values(input.results);
  for (const double value : values) table.columns.push_back({format_number(value)});
  for (size_t v = 0; v < plan.tuned.size(); ++v) {
    const TunedVariant& tuned = plan.tuned[v];
    table.rows.push_back({text_cell(plan.variants[v].label),
                          tuned.best ? Cell{tuned.values[*tuned.best], *parse_number(tuned.values[*tuned.best])}
                                     : number_cell(not_a_number)});
    for (const double value : values) table.rows.back().push_back(loss_at(tuned, value));
  }
  return table;
}

std::string tuning_text(const ChartInput& input) {
  const StudyResults& results = input.results;
  return concat("Every variant was trained once per value of ", results.plan.spec.tune.key,
                " at full length, and its own best value is used in the study: ",
                plural(results.tuning_trials, "tuning trial"), ", ", clock_time(results.tuning_cpu_seconds),
                " of processor time, compared with ", clock_time(results.trials_cpu_seconds), " for the study itself.");
}

std::vector<std::string> tuning_notices(const StudyResults& results) {
  const Plan& plan = results.plan;
  std::vector<std::string> notices;
  if (!plan.is_tuned())
    notices.push_back(concat("The tuning of ", plan.spec.tune.key, " has not finished; trials start after it."));
  std::vector<std::string> extended;
  for (size_t v = 0; v < plan.tuned.size(); ++v) {
    const TunedVariant& tuned = plan.tuned[v];
    if (tuned.extended) extended.push_back(plan.variants[v].label);
    if (tuned.at_edge())
      notices.push_back(concat("The best ", short_key(results), " of ", plan.variants[v].label, ", ",
                               tuned.values[*tuned.best],
                               ", lies at the edge of its grid; a value beyond it may be better."));
  }
  if (!extended.empty())
    notices.push_back(
        concat("The grid of ", short_key(results), " was extended once for: ", join(extended, "; "), "."));
  return notices;
}

}  // namespace normlab
