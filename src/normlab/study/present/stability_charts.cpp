#include "normlab/study/present/stability_charts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "normlab/base/text.h"
#include "normlab/report/dot_chart.h"
#include "normlab/report/line_chart.h"
#include "normlab/report/panels.h"
#include "normlab/report/scale.h"
#include "normlab/stats/sensitivity.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

// A grid seen along one numeric dimension: the values of the other one are the series.
struct Lines {
  size_t along = 0;
  std::vector<std::string> labels;          // of the series
  std::vector<std::vector<size_t>> places;  // of each series: the variant at each value of `along`
};

std::optional<Lines> lines_along(const Grid& grid, size_t along) {
  if (grid.dimensions.size() > 2 || !grid.dimensions[along].numeric) return std::nullopt;
  const bool alone = grid.dimensions.size() == 1;
  const size_t n = grid.dimensions[along].values.size();
  Lines lines{.along = along, .labels = {}, .places = {}};
  if (alone) {
    lines.labels = {"all trials"};
    lines.places.emplace_back(n);
    for (size_t i = 0; i < n; ++i) lines.places[0][i] = i;
    return lines;
  }
  const Dimension& other = grid.dimensions[1 - along];
  for (size_t j = 0; j < other.values.size(); ++j) {
    lines.labels.push_back(other.label(j));
    lines.places.emplace_back();
    for (size_t i = 0; i < n; ++i)
      lines.places.back().push_back(along == 0 ? grid.variant_at(i, j) : grid.variant_at(j, i));
  }
  return lines;
}

std::optional<size_t> rate_dimension(const Grid& grid) {
  for (size_t i = 0; i < grid.dimensions.size(); ++i)
    if (grid.dimensions[i].name == "lr" || grid.dimensions[i].name == "optim.lr") return i;
  return std::nullopt;
}

// The one to draw logits against: the learning rate, else the first dimension of numbers.
std::optional<size_t> numeric_dimension(const Grid& grid) {
  if (const auto rate = rate_dimension(grid)) return rate;
  for (size_t i = 0; i < grid.dimensions.size(); ++i)
    if (grid.dimensions[i].numeric) return i;
  return std::nullopt;
}

// Validation loss at the end, counted from the loss at the start; absent while a trial has not ended.
std::optional<double> loss_of(const TrialResult& trial) {
  if (!trial.record.ended() || trial.curve.empty() || trial.curve.front().step != 0) return std::nullopt;
  const double end = is_finished(trial) ? trial.curve.back().loss : not_a_number;
  return clipped_loss(end, trial.curve.front().loss);
}

using Replicate = std::pair<int, int64_t>;  // fold and seed

std::map<Replicate, double> losses_of(const StudyResults& results, size_t variant) {
  std::map<Replicate, double> losses;
  for (const TrialResult& trial : results.trials)
    if (const auto loss = loss_of(trial); loss && trial.variant == variant) losses[{trial.fold, trial.seed}] = *loss;
  return losses;
}

// What the trials of each variant give for `value`, where they give something.
DotSeries dots(const StudyResults& results, const std::vector<size_t>& variants,
               const std::function<std::optional<double>(const TrialResult&)>& value) {
  DotSeries series;
  for (const size_t variant : variants) {
    std::vector<double> values;
    for (const TrialResult& trial : results.trials)
      if (const auto given = trial.variant == variant ? value(trial) : std::nullopt) values.push_back(*given);
    series.mean.push_back(values.empty() ? not_a_number : mean(values));
    const double error = values.size() > 1 ? standard_error(values) : not_a_number;
    series.low.push_back(series.mean.back() - error);
    series.high.push_back(series.mean.back() + error);
    series.values.push_back(values);
  }
  return series;
}

bool has_values(const DotChart& chart) {
  return std::any_of(chart.series.begin(), chart.series.end(), [](const DotSeries& series) {
    return std::any_of(series.mean.begin(), series.mean.end(), [](double x) { return std::isfinite(x); });
  });
}

std::string with_sensitivity(const Sensitivity& of) {
  if (of.values.empty()) return of.label;
  const std::string error = of.values.size() > 1 ? concat(" \xC2\xB1 ", significant(standard_error(of.values), 2)) : "";
  return concat(of.label, ": ", significant(mean(of.values), 3), error);
}

std::optional<Figure> rate_chart(const ChartInput& input) {
  const auto rate = rate_dimension(input.grid);
  const auto lines = rate ? lines_along(input.grid, *rate) : std::nullopt;
  if (!lines) return std::nullopt;
  const std::vector<Sensitivity> found = sensitivities(input.results, input.grid);
  DotChart chart{{"rates", "Final loss against learning rate",
                  "Mean over trials \xC2\xB1 1 standard error; faint dots are trials. A run that diverged or whose "
                  "final loss is above "
                  "its initial loss counts with its initial loss. Next to each name: the learning-rate sensitivity, "
                  "the mean over rates "
                  "of the loss above that of the best rate (Wortsman et al. 2023), with its standard error.",
                  "The final validation loss for each learning rate, one series for each variant."},
                 input.grid.dimensions[*rate].values,
                 "peak learning rate",
                 "validation loss (nats per token)",
                 {}};
  const auto styles = category_styles(lines->labels.size());
  for (size_t i = 0; i < lines->labels.size(); ++i) {
    chart.series.push_back(dots(input.results, lines->places[i], loss_of));
    chart.series.back().label = with_sensitivity(found[i]);
    chart.series.back().style = styles[i];
  }
  return has_values(chart) ? std::optional(figure(chart)) : std::nullopt;
}

std::optional<Figure> logits_against(const ChartInput& input) {
  const auto along = numeric_dimension(input.grid);
  const auto lines = along ? lines_along(input.grid, *along) : std::nullopt;
  if (!lines) return std::nullopt;
  const Dimension& dimension = input.grid.dimensions[*along];
  DotChart chart{{"logits-end", concat("Largest attention logit against ", dimension.name),
                  "At the last probe of each trial, over all layers and heads; mean over trials \xC2\xB1 1 standard "
                  "error, faint dots are trials.",
                  "The largest attention logit at the end for each value, one series for each variant."},
                 dimension.values,
                 dimension.name,
                 "largest attention logit",
                 {}};
  const auto styles = category_styles(lines->labels.size());
  Extent range;
  for (size_t i = 0; i < lines->labels.size(); ++i) {
    chart.series.push_back(dots(input.results, lines->places[i], [](const TrialResult& trial) {
      return trial.attention.empty() ? std::nullopt : std::optional(trial.attention.back().max_logit);
    }));
    chart.series.back().label = lines->labels[i];
    chart.series.back().style = styles[i];
    for (const double value : chart.series.back().mean) range.include(value);
  }
  chart.log = !range.empty() && range.low > 0 && range.high > 10 * range.low;
  return has_values(chart) ? std::optional(figure(chart)) : std::nullopt;
}

// Mean over the trials of a variant that still run, with the least and the largest as a band; a gap at the end where
// the last of them has diverged.
Series mean_over_time(const ChartInput& input, size_t variant, double AttentionPoint::*value) {
  std::map<int64_t, std::vector<double>> by_step;
  for (const TrialResult& trial : input.results.trials)
    if (trial.variant == variant)
      for (const AttentionPoint& point : trial.attention) by_step[point.step].push_back(point.*value);
  Series series;
  series.x.resize(1);
  for (const auto& [step, values] : by_step) {
    series.x[0].push_back(static_cast<double>(step));
    series.y.push_back(mean(values));
    series.low.push_back(*std::min_element(values.begin(), values.end()));
    series.high.push_back(*std::max_element(values.begin(), values.end()));
  }
  return series;
}

std::optional<Figure> over_time(const ChartInput& input, const Caption& caption, const YAxis& y,
                                double AttentionPoint::*value) {
  const std::vector<XAxis> x = {{"whole run", "training step"}};
  const auto along = numeric_dimension(input.grid);
  const auto lines = input.grid.dimensions.size() == 2 && along ? lines_along(input.grid, *along) : std::nullopt;
  bool any = false;
  if (lines) {
    Panels chart{caption, x, y, {}, 3};
    const auto styles = category_styles(lines->labels.size());
    for (size_t i = 0; i < input.grid.dimensions[*along].values.size(); ++i) {
      chart.panels.push_back({input.grid.dimensions[*along].label(i), {}});
      for (size_t j = 0; j < lines->labels.size(); ++j) {
        Series series = mean_over_time(input, lines->places[j][i], value);
        any = any || !series.y.empty();
        series.label = lines->labels[j], series.style = styles[j];
        chart.panels.back().series.push_back(std::move(series));
      }
    }
    return any ? std::optional(figure(chart)) : std::nullopt;
  }
  LineChart chart{caption, x, y, {}};
  for (size_t i = 0; i < input.results.plan.variants.size(); ++i) {
    chart.series.push_back(mean_over_time(input, i, value));
    any = any || !chart.series.back().y.empty();
    chart.series.back().label = input.results.plan.variants[i].label;
    chart.series.back().style = input.styles.variants[i];
  }
  return any ? std::optional(figure(chart)) : std::nullopt;
}

}  // namespace

std::vector<Sensitivity> sensitivities(const StudyResults& results, const Grid& grid) {
  const auto rate = rate_dimension(grid);
  const auto lines = rate ? lines_along(grid, *rate) : std::nullopt;
  std::vector<Sensitivity> list;
  for (size_t i = 0; lines && i < lines->labels.size(); ++i) {
    std::map<Replicate, std::vector<double>> by_replicate;
    std::map<Replicate, double> initial;
    for (const size_t variant : lines->places[i])
      for (const auto& [replicate, loss] : losses_of(results, variant)) by_replicate[replicate].push_back(loss);
    for (const TrialResult& trial : results.trials)
      if (trial.variant == lines->places[i].front() && !trial.curve.empty())
        initial[{trial.fold, trial.seed}] = trial.curve.front().loss;
    list.push_back({lines->labels[i], {}});
    for (const auto& [replicate, losses] : by_replicate)
      if (losses.size() == lines->places[i].size())
        list.back().values.push_back(learning_rate_sensitivity(losses, initial.at(replicate)));
  }
  return list;
}

std::vector<Figure> stability_charts(const ChartInput& input) {
  std::vector<Figure> figures;
  const auto add = [&](std::optional<Figure> figure) {
    if (figure) figures.push_back(std::move(*figure));
  };
  constexpr const char* note = "Mean over trials; the band spans the smallest to the largest trial.";
  add(rate_chart(input));
  add(over_time(input,
                {"logits", "Largest attention logit during training", concat("Over all layers and heads. ", note),
                 "Curves of the largest attention logit against training step."},
                {"largest attention logit", true, true}, &AttentionPoint::max_logit));
  add(over_time(
      input,
      {"entropy", "Entropy of attention during training",
       concat("Mean over layers, heads and queries of the entropy as a share of its largest value: 0 is one key, "
              "1 is uniform. ",
              note),
       "Curves of the relative entropy of attention against training step."},
      {"relative entropy", false}, &AttentionPoint::relative_entropy));
  add(logits_against(input));
  return figures;
}

}  // namespace normlab
