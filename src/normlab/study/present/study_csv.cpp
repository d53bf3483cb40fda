// The full tables of a study.
#include "normlab/study/present/study_csv.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "normlab/base/text.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

Cell cell(std::optional<double> value) { return number_cell(value.value_or(not_a_number), 5); }

// Null for the baseline itself.
const Comparison* comparison_of(const Analysis& analysis, size_t variant) {
  for (const Comparison& comparison : analysis.comparisons)
    if (comparison.variant == variant) return &comparison;
  return nullptr;
}

void add_grid_columns(Table& table, const Grid& grid) {
  for (const Dimension& dimension : grid.dimensions)
    if (dimension.name != "variant") table.columns.push_back({dimension.name, "", Align::left});
}
void add_grid_cells(std::vector<Cell>& row, const Grid& grid, size_t variant) {
  for (size_t i = 0; i < grid.dimensions.size(); ++i) {
    const Dimension& dimension = grid.dimensions[i];
    if (dimension.name == "variant") continue;
    const std::string& value = dimension.values[grid.places[variant][i]];
    row.push_back({value, dimension.numeric ? parse_number(value) : std::nullopt});
  }
}

void add_interval(std::vector<Cell>& row, const std::optional<Interval>& interval) {
  row.push_back(cell(interval ? std::optional(interval->low) : std::nullopt));
  row.push_back(cell(interval ? std::optional(interval->high) : std::nullopt));
}
void add_speed(std::vector<Cell>& row, const std::optional<SpeedUp>& speed) {
  row.push_back(cell(speed ? speed->factor : std::nullopt));
  add_interval(row, speed ? speed->interval : std::nullopt);
}

std::vector<Cell> summary_row(const ChartInput& input, size_t variant) {
  const VariantSummary& summary = input.analysis.variants[variant];
  const Comparison* comparison = comparison_of(input.analysis, variant);
  const Comparison nothing, &other = comparison ? *comparison : nothing;
  std::vector<Cell> row = {text_cell(input.results.plan.variants[variant].label)};
  add_grid_cells(row, input.grid, variant);
  for (const size_t count : {summary.planned, summary.finished, summary.diverged, summary.blocks.size()})
    row.push_back(count_cell(count));
  for (const auto& value : {summary.mean, summary.standard_error, summary.mean_best, summary.average_rank})
    row.push_back(cell(value));
  row.push_back(count_cell(other.blocks.size()));
  row.push_back(cell(other.mean));
  row.push_back(cell(other.relative));
  add_interval(row, other.t ? std::optional(other.t->interval) : std::nullopt);
  row.push_back(cell(other.t ? std::optional(other.t->p_value) : std::nullopt));
  add_interval(row, other.adjusted);
  row.push_back(cell(other.adjusted ? std::optional(other.adjusted->level) : std::nullopt));
  row.push_back(cell(other.holm_p));
  row.push_back(cell(other.wilcoxon ? std::optional(other.wilcoxon->p_value) : std::nullopt));
  add_interval(row, other.bootstrap ? std::optional(other.bootstrap->interval) : std::nullopt);
  row.push_back(count_cell(other.in_steps ? other.in_steps->ratios.size() : 0));
  row.push_back(count_cell(other.in_steps ? other.in_steps->reached() : 0));
  row.push_back(cell(summary.reached ? std::optional(summary.reached->step) : std::nullopt));
  add_speed(row, other.in_steps);
  row.push_back(cell(median_if_any(summary.cpu_seconds)));
  row.push_back(cell(median_if_any(summary.wall_seconds)));
  row.push_back(cell(summary.reached ? std::optional(summary.reached->seconds) : std::nullopt));
  add_speed(row, other.in_seconds);
  return row;
}

// The layers in which some trial has learned a gain, or a p.
struct LearnedLayers {
  std::set<int> gains, p;
};
LearnedLayers learned_layers(const StudyResults& results) {
  LearnedLayers layers;
  for (const TrialResult& trial : results.trials) {
    for (const LayerValue& each : trial.gains) layers.gains.insert(each.layer);
    for (const LayerValue& each : trial.p) layers.p.insert(each.layer);
  }
  return layers;
}

void add_layer_columns(Table& table, const char* name, const std::set<int>& layers) {
  for (const int layer : layers)
    table.columns.push_back({layer < 0 ? std::string(name) : concat(name, "_layer_", layer), "", Align::right});
}

void add_layer_cells(std::vector<Cell>& row, const std::vector<LayerValue>& values, const std::set<int>& layers) {
  for (const int layer : layers) {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const LayerValue& each) { return each.layer == layer; });
    row.push_back(number_cell(found == values.end() ? not_a_number : found->value));
  }
}

std::vector<Cell> trial_row(const ChartInput& input, const TrialResult& trial, const LearnedLayers& layers) {
  std::vector<Cell> row = {text_cell(input.results.plan.variants[trial.variant].label)};
  add_grid_cells(row, input.grid, trial.variant);
  row.push_back({concat(trial.fold), trial.fold});
  row.push_back(text_cell(concat(trial.seed)));
  row.push_back(text_cell(name_of(trial.record.status)));
  const bool begun = !trial.curve.empty(), done = is_finished(trial);
  row.push_back({begun ? concat(trial.curve.back().step) : dash,
                 begun ? static_cast<double>(trial.curve.back().step) : not_a_number});
  row.push_back(cell(done ? std::optional(trial.curve.back().loss) : std::nullopt));
  row.push_back(cell(begun ? std::optional(best_loss(trial)) : std::nullopt));
  add_layer_cells(row, trial.gains, layers.gains);
  add_layer_cells(row, trial.p, layers.p);
  row.push_back(text_cell(trial.folder));
  row.push_back(text_cell(trial.record.message));
  row.push_back(number_cell(begun ? trial.curve.back().cpu_seconds : not_a_number));
  row.push_back(number_cell(begun ? trial.curve.back().wall_seconds : not_a_number));
  return row;
}

}  // namespace

Table summary_table(const ChartInput& input) {
  Table table{"Summary, one row per variant", {{"variant", "", Align::left}}, {}};
  add_grid_columns(table, input.grid);
  for (const char* name : {"trials",
                           "finished",
                           "diverged",
                           "blocks",
                           "final_loss",
                           "standard_error",
                           "best_loss",
                           "average_rank",
                           "paired_blocks",
                           "difference",
                           "relative_difference",
                           "interval_low",
                           "interval_high",
                           "p_value",
                           "adjusted_low",
                           "adjusted_high",
                           "adjusted_level",
                           "holm_p_value",
                           "wilcoxon_p_value",
                           "bca_low",
                           "bca_high",
                           "target_blocks",
                           "reached_blocks",
                           "steps_to_target",
                           "speed_up_steps",
                           "speed_up_steps_low",
                           "speed_up_steps_high",
                           "median_cpu_seconds",
                           "median_wall_seconds",
                           "cpu_seconds_to_target",
                           "speed_up_time",
                           "speed_up_time_low",
                           "speed_up_time_high"})
    table.columns.push_back({name, "", Align::right});
  for (size_t i = 0; i < input.analysis.variants.size(); ++i) table.rows.push_back(summary_row(input, i));
  return table;
}

Table trial_table(const ChartInput& input) {
  Table table{"Trials", {{"variant", "", Align::left}}, {}};
  add_grid_columns(table, input.grid);
  for (const char* name : {"fold", "seed", "status", "step", "final_loss", "best_loss"})
    table.columns.push_back({name, "", Align::right});
  const LearnedLayers layers = learned_layers(input.results);
  add_layer_columns(table, "gain", layers.gains);
  add_layer_columns(table, "p", layers.p);
  table.columns.push_back({"folder", "", Align::left});
  table.columns.push_back({"message", "", Align::left});
  table.columns.push_back({"cpu_seconds", "", Align::right});
  table.columns.push_back({"wall_seconds", "", Align::right});
  for (const TrialResult& trial : input.results.trials) table.rows.push_back(trial_row(input, trial, layers));
  return table;
}

}  // namespace normlab
