#include "normlab/study/present/scaling_charts.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/scale.h"
#include "normlab/report/scatter_chart.h"
#include "normlab/study/present/scaling_tables.h"

namespace normlab {
namespace {

// Numbers of an axis in thousands, millions ...
struct Prefix {
  double divisor = 1;
  std::string name;
};
Prefix prefix_of(double largest) {
  constexpr const char* names[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  const int step = std::clamp(static_cast<int>(std::floor(std::log10(largest) / 3)), 0, 8);
  return {std::pow(1000.0, step), names[step]};
}

std::vector<double> between(double low, double high, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(low * std::pow(high / low, i / double(count - 1)));
  return values;
}

Extent flops_range(const ScalingAnalysis& analysis) {
  Extent range;
  for (const SchemeFit& scheme : analysis.schemes)
    for (const ScalingRun& run : scheme.runs) range.include(run_flops(scheme, run));
  return range;
}

std::vector<double> divided(std::vector<double> values, double divisor) {
  for (double& value : values) value /= divisor;
  return values;
}

// The frontier, ten times beyond the largest run.
Figure compute_chart(const ScalingAnalysis& analysis, const std::vector<Style>& styles) {
  const Extent range = flops_range(analysis);
  const Prefix unit = prefix_of(range.high);
  const std::vector<double> compute = between(range.low, 10 * range.high, 60);
  ScatterChart chart{
      .caption =
          {"loss-compute", "Loss against compute, with the compute-optimal frontier",
           "One marker per run; lines: the lowest loss of any size at that compute by the fitted law, with 95 % bands; "
           "beyond the runs, up to ten times their operations, they are extrapolations.",
           "Final losses of all runs against their training operations, and the frontier of each scheme."},
      .x_title = concat("training operations, ", unit.name, "FLOP"),
      .y_title = "final validation loss, nats per token",
      .series = {},
      .log_x = true,
      .log_y = true};
  for (size_t s = 0; s < analysis.schemes.size(); ++s) {
    const SchemeFit& scheme = analysis.schemes[s];
    ScatterSeries series{.label = spoken(scheme.scheme), .style = styles[s], .x = {}, .y = {}};
    for (const ScalingRun& run : scheme.runs) {
      series.x.push_back(run_flops(scheme, run) / unit.divisor);
      series.y.push_back(run.loss);
    }
    series.line_x = divided(compute, unit.divisor);
    for (const double flops : compute) {
      const auto least = [&](const ScalingLaw& law) { return optimum(law, flops, scheme.flops_per_param_token).loss; };
      const Interval interval = scheme.fit.interval(least);
      series.line_y.push_back(least(scheme.fit.law));
      series.band_low.push_back(interval.low);
      series.band_high.push_back(interval.high);
    }
    chart.series.push_back(series);
  }
  return figure(chart);
}

Figure iso_chart(const SchemeFit& scheme, const Extent& flops) {
  Extent sizes;
  for (const ScalingRun& run : scheme.runs) sizes.include(run.n_params);
  const std::vector<double> budgets = between(flops.low, flops.high, 5);
  for (const double each : budgets) sizes.include(optimum(scheme.fit.law, each, scheme.flops_per_param_token).n_params);
  const Prefix unit = prefix_of(sizes.high);
  const std::string name = spoken(scheme.scheme);
  ScatterChart chart{.caption = {concat("iso-", slug(name)), concat("Curves of equal compute: ", name),
                                 "A line: the fitted loss of models of each size with the same training operations; "
                                 "its marker: the best size.",
                                 "Fitted loss against model size at several budgets of compute."},
                     .x_title = concat("parameters", unit.name.empty() ? "" : concat(", ", unit.name)),
                     .y_title = "fitted loss, nats per token",
                     .series = {},
                     .log_x = true,
                     .log_y = true};
  const std::vector<Style> styles = ordered_styles(budgets.size());
  for (size_t i = 0; i < budgets.size(); ++i) {
    const double product = budgets[i] / scheme.flops_per_param_token;
    const Optimum best = optimum(scheme.fit.law, budgets[i], scheme.flops_per_param_token);
    ScatterSeries series{.label = concat(si(budgets[i]), "FLOP"), .style = styles[i], .x = {}, .y = {}};
    if (std::isfinite(best.loss)) series.x = {best.n_params / unit.divisor}, series.y = {best.loss};
    for (const double n_params : between(sizes.low / 2, 2 * sizes.high, 50)) {
      series.line_x.push_back(n_params / unit.divisor);
      series.line_y.push_back(scheme.fit.law.loss(n_params, product / n_params));
    }
    chart.series.push_back(series);
  }
  return figure(chart);
}

// Rival less baseline on their frontiers.
Figure advantage_chart(const ScalingAnalysis& analysis, const std::vector<Style>& styles) {
  const Extent range = flops_range(analysis);
  const Prefix unit = prefix_of(range.high);
  const std::vector<double> compute = between(range.low, 100 * range.high, 40);
  const SchemeFit& baseline = analysis.schemes.front();
  ScatterChart chart{.caption = {"scheme-against-scheme", concat("Loss on the frontier, against ", baseline.scheme),
                                 concat("Below zero is better than ", baseline.scheme, "; 95 % bands. Runs end at ",
                                        si(range.high), "FLOP; beyond that it is an extrapolation."),
                                 "Difference of the lowest fitted losses at equal compute."},
                     .x_title = concat("training operations, ", unit.name, "FLOP"),
                     .y_title = "difference of loss, nats per token",
                     .series = {},
                     .log_x = true,
                     .rule = 0.0};
  for (size_t s = 1; s < analysis.schemes.size(); ++s) {
    ScatterSeries series{.label = analysis.schemes[s].scheme, .style = styles[s], .x = {}, .y = {}};
    series.line_x = divided(compute, unit.divisor);
    for (const double flops : compute) {
      const Estimate found = advantage({baseline.fit, baseline.flops_per_param_token},
                                       {analysis.schemes[s].fit, analysis.schemes[s].flops_per_param_token}, flops)
                                 .loss_difference;
      series.line_y.push_back(found.value);
      series.band_low.push_back(found.interval.low);
      series.band_high.push_back(found.interval.high);
    }
    chart.series.push_back(series);
  }
  return figure(chart);
}

}  // namespace

std::vector<Figure> frontier_charts(const ScalingAnalysis& analysis) {
  std::vector<Figure> figures;
  if (analysis.schemes.empty()) return figures;
  const std::vector<Style> styles = category_styles(analysis.schemes.size(), 0);
  figures.push_back(compute_chart(analysis, styles));
  if (analysis.schemes.size() > 1) figures.push_back(advantage_chart(analysis, styles));
  for (const SchemeFit& scheme : analysis.schemes) figures.push_back(iso_chart(scheme, flops_range(analysis)));
  return figures;
}

std::vector<Figure> residual_charts(const ScalingAnalysis& analysis) {
  std::vector<Figure> figures;
  if (analysis.schemes.empty()) return figures;
  const std::vector<Style> styles = category_styles(analysis.schemes.size(), 0);
  const auto draw = [&](const char* id, const char* what, double ScalingRun::*member) {
    Extent range;
    for (const SchemeFit& scheme : analysis.schemes)
      for (const ScalingRun& run : scheme.runs) range.include(run.*member);
    const Prefix unit = prefix_of(range.high);
    ScatterChart chart{.caption = {id, concat("Residuals against ", what),
                                   "Log of the measured loss minus log of the fitted one: 0.01 is about one percent. "
                                   "Curvature or a slope means that the law does not describe the runs.",
                                   "Residuals of the fit."},
                       .x_title = concat(what, unit.name.empty() ? "" : concat(", ", unit.name)),
                       .y_title = "residual of log loss",
                       .series = {},
                       .log_x = true,
                       .rule = 0.0};
    for (size_t s = 0; s < analysis.schemes.size(); ++s) {
      const SchemeFit& scheme = analysis.schemes[s];
      ScatterSeries series{.label = spoken(scheme.scheme), .style = styles[s], .x = {}, .y = scheme.fit.residuals};
      for (const ScalingRun& run : scheme.runs) series.x.push_back(run.*member / unit.divisor);
      chart.series.push_back(series);
    }
    figures.push_back(figure(chart));
  };
  draw("residuals-params", "parameters", &ScalingRun::n_params);
  draw("residuals-tokens", "tokens", &ScalingRun::n_tokens);
  return figures;
}

std::vector<Figure> batch_charts(const ScalingAnalysis& analysis) {
  std::vector<std::pair<std::string, std::string>> groups;  // scheme, size
  for (const BatchFit& each : analysis.batches)
    if (std::find(groups.begin(), groups.end(), std::pair(each.scheme, each.size)) == groups.end())
      groups.emplace_back(each.scheme, each.size);
  if (groups.empty()) return {};
  const std::vector<Style> styles = category_styles(groups.size(), 0);
  ScatterChart chart{.caption = {"critical-batch", "Critical batch size against the loss reached",
                                 "Where twice the batch no longer halves the steps; 95 % intervals of the bootstrap. "
                                 "Training moves from right to left.",
                                 "Critical batch size of each scheme at several losses."},
                     .x_title = "validation loss reached, nats per token",
                     .y_title = "critical batch, tokens per step",
                     .series = {},
                     .log_y = true};
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto& [scheme, size] = groups[g];
    ScatterSeries series{.label = size.empty() ? spoken(scheme) : concat(spoken(scheme), ", ", size),
                         .style = styles[g],
                         .x = {},
                         .y = {}};
    for (const BatchFit& each : analysis.batches) {
      if (each.scheme != scheme || each.size != size) continue;
      const auto critical = [](const BatchLaw& law) { return law.critical(); };
      const Interval interval = each.fit.interval(critical);
      series.x.push_back(each.target);
      series.y.push_back(critical(each.fit.law));
      series.low.push_back(interval.low);
      series.high.push_back(interval.high);
    }
    chart.series.push_back(series);
  }
  return {figure(chart)};
}

}  // namespace normlab
