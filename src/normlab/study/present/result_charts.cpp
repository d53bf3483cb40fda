// The results of a study as charts.
#include "normlab/study/present/result_charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "normlab/base/text.h"
#include "normlab/report/box_chart.h"
#include "normlab/report/heat_map.h"
#include "normlab/report/interval_chart.h"
#include "normlab/report/scale.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

std::string percent(double share, int decimals = 1) { return concat(signed_number(100 * share, decimals), " %"); }

// The same in every row, and no more than the narrowest interval supports.
struct Digits {
  int loss = 3, percent = 1;
};
Digits digits_of(const Analysis& analysis) {
  Digits digits;
  double narrowest = std::numeric_limits<double>::infinity(), in_percent = narrowest;
  for (const Comparison& each : analysis.comparisons) {
    if (!each.adjusted) continue;
    const double half = (each.adjusted->high - each.adjusted->low) / 2;
    if (half > 0) narrowest = std::min(narrowest, half);
    if (half > 0 && *each.mean != 0)
      in_percent = std::min(in_percent, 100 * half * std::fabs(*each.relative / *each.mean));
  }
  if (std::isfinite(narrowest)) digits.loss = supported_decimals(narrowest);
  if (std::isfinite(in_percent))
    digits.percent = std::clamp(-static_cast<int>(std::floor(std::log10(in_percent))), 0, 2);
  return digits;
}

const std::string& label_of(const ChartInput& input, size_t variant) {
  return input.results.plan.variants[variant].label;
}

IntervalRow interval_row(const ChartInput& input, const Comparison& comparison, const std::string& label,
                         const Digits& digits) {
  IntervalRow row{.label = label,
                  .style = input.styles.variants[comparison.variant],
                  .mean = comparison.mean.value_or(not_a_number),
                  .low = comparison.adjusted ? comparison.adjusted->low : not_a_number,
                  .high = comparison.adjusted ? comparison.adjusted->high : not_a_number,
                  .values = comparison.differences,
                  .notes = {"", "", ""}};
  if (comparison.mean)
    row.notes = {signed_number(*comparison.mean, digits.loss), percent(*comparison.relative, digits.percent),
                 "\xE2\x80\x93"};
  if (comparison.holm_p) row.notes[2] = p_text(*comparison.holm_p);
  return row;
}

IntervalChart empty_difference_chart(const Analysis& analysis, const std::string& id, const std::string& title,
                                     const std::string& baseline) {
  const BlockKind block = analysis.block;
  return {{id, title,
           concat("Mean of the paired differences with ", interval_name(analysis), " (",
                  block == BlockKind::fold ? "corrected resampled" : "paired", " t); dots are ", name_of(block),
                  "s. The p-values are adjusted for the number of comparisons."),
           concat("For each variant the mean difference to ", baseline, " with its interval.")},
          "difference in validation loss (nats per token)",
          name_of(block),
          concat("better than ", baseline),
          concat("worse than ", baseline),
          {"difference", "relative", "p-value"},
          {}};
}

}  // namespace

Figure difference_chart(const ChartInput& input) {
  const std::string& baseline = label_of(input, input.analysis.baseline);
  IntervalChart chart = empty_difference_chart(input.analysis, "differences",
                                               concat("Final validation loss against ", baseline), baseline);
  for (const Comparison& comparison : input.analysis.comparisons)
    chart.intervals.push_back(
        interval_row(input, comparison, label_of(input, comparison.variant), digits_of(input.analysis)));
  return figure(chart);
}

std::vector<Figure> group_charts(const ChartInput& input, const std::vector<Group>& groups) {
  std::vector<IntervalChart> charts;
  Extent shared;
  for (const Group& group : groups) {
    const size_t along = input.styles.series;
    const auto label = [&](size_t variant) {
      return input.grid.dimensions[along].label(input.grid.places[variant][along]);
    };
    const std::string baseline = label(group.analysis.baseline);
    charts.push_back(empty_difference_chart(group.analysis, concat("differences-", charts.size() + 1),
                                            concat(group.label, ": against ", baseline), baseline));
    for (const Comparison& comparison : group.analysis.comparisons) {
      charts.back().intervals.push_back(
          interval_row(input, comparison, label(comparison.variant), digits_of(group.analysis)));
      const IntervalRow& row = charts.back().intervals.back();
      for (const double value : {row.mean, row.low, row.high}) shared.include(value);
      for (const double value : row.values) shared.include(value);
    }
  }
  std::vector<Figure> figures;
  for (IntervalChart& chart : charts) {
    chart.shared = shared;
    figures.push_back(figure(chart));
  }
  return figures;
}

Figure time_chart(const ChartInput& input) {
  double longest = 0;
  for (const VariantSummary& variant : input.analysis.variants)
    for (const double seconds : variant.cpu_seconds) longest = std::max(longest, seconds);
  const Unit unit = time_unit(longest);
  BoxChart chart{{"time", "Training time",
                  "Processor time of the training steps of each trial, without evaluation. Dots: trials; with five or "
                  "more also line: median; box: quartiles; whiskers: up to 1.5 \xC3\x97 IQR; rings: outliers; "
                  "diamond: mean.",
                  "Training time of each trial, one row for each variant."},
                 concat("processor time of training (", unit.name, ")"),
                 "trial",
                 {},
                 {concat("median (", unit.name, ")"), concat("against ", label_of(input, input.analysis.baseline))}};
  if (input.grid.dimensions.size() == 2) chart.note_titles[1] = "against the baseline";
  const std::vector<double>& of_baseline = input.analysis.variants[input.analysis.baseline].cpu_seconds;
  for (size_t i = 0; i < input.analysis.variants.size(); ++i) {
    std::vector<double> values = input.analysis.variants[i].cpu_seconds;
    std::vector<std::string> notes = {"", ""};
    if (!values.empty()) notes[0] = significant(median(values) / unit.divisor, 3);
    if (!values.empty() && !of_baseline.empty() && i != input.analysis.baseline)
      notes[1] = percent(median(values) / median(of_baseline) - 1);
    for (double& value : values) value /= unit.divisor;
    chart.boxes.push_back({label_of(input, i), input.styles.variants[i], values, notes});
  }
  return figure(chart);
}

std::optional<Figure> loss_map(const ChartInput& input) {
  if (input.grid.dimensions.size() != 2) return std::nullopt;
  const size_t series = input.styles.series;
  const Dimension &columns = input.grid.dimensions[series], &rows = input.grid.dimensions[1 - series];
  HeatMap map{{"grid", "Final validation loss over the grid",
               concat("Mean over the ", name_of(input.analysis.block), "s each has finished; lower is better."),
               "A table of mean final losses, darker is higher."},
              rows.name,
              columns.name,
              "validation loss (nats per token)",
              rows.values,
              columns.values,
              {},
              4,
              /*from_zero=*/false};
  for (size_t i = 0; i < rows.values.size(); ++i) {
    map.values.emplace_back();
    for (size_t j = 0; j < columns.values.size(); ++j) {
      const size_t variant = series == 0 ? input.grid.variant_at(j, i) : input.grid.variant_at(i, j);
      map.values.back().push_back(input.analysis.variants[variant].mean.value_or(not_a_number));
    }
  }
  return figure(map);
}

}  // namespace normlab
