// The curves of a study.
#include "normlab/study/present/curve_charts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "normlab/base/text.h"
#include "normlab/report/line_chart.h"
#include "normlab/report/panels.h"

namespace normlab {
namespace {

using Curves = std::vector<const std::vector<EvalPoint>*>;

// What several curves have at the steps that all of them have.
struct MeanPoint {
  double step, loss, seconds, standard_error;
};
std::vector<MeanPoint> mean_points(const Curves& curves) {
  std::vector<MeanPoint> points;
  if (curves.empty()) return points;
  std::vector<size_t> next(curves.size(), 0);  // steps rise in every curve
  for (const EvalPoint& first : *curves.front()) {
    std::vector<double> losses, seconds;
    for (size_t i = 0; i < curves.size(); ++i) {
      const std::vector<EvalPoint>& curve = *curves[i];
      while (next[i] < curve.size() && curve[next[i]].step < first.step) ++next[i];
      if (next[i] == curve.size() || curve[next[i]].step != first.step) break;
      losses.push_back(curve[next[i]].loss);
      seconds.push_back(curve[next[i]].cpu_seconds);
    }
    if (losses.size() < curves.size()) continue;
    points.push_back({static_cast<double>(first.step), mean(losses), mean(seconds),
                      losses.size() > 1 ? standard_error(losses) : std::nan("")});
  }
  return points;
}

Curves curves_where(const StudyResults& results, const std::function<bool(const TrialResult&)>& wanted) {
  Curves curves;
  for (const TrialResult& trial : results.trials)
    if (!trial.curve.empty() && wanted(trial)) curves.push_back(&trial.curve);
  return curves;
}

double last_step(const StudyResults& results) {
  int64_t last = 0;
  for (const TrialResult& trial : results.trials)
    if (!trial.curve.empty()) last = std::max(last, trial.curve.back().step);
  return static_cast<double>(last);
}

double tokens_per_step(const Plan& plan, size_t variant) {
  for (const Trial& trial : plan.trials) {
    const Config& config = trial.config;
    if (trial.variant == variant)
      return static_cast<double>(config.train.batch_size) * config.model.seq_len * config.train.accumulate;
  }
  return 0;
}

// The ways to lay out the horizontal axis: the whole run first; its steep first half hides the differences of the
// second.
struct Horizontal {
  std::vector<XAxis> axes;
  Unit tokens, time;
  bool halved = false;
};
Horizontal horizontal(const StudyResults& results, bool with_costs) {
  const double steps = last_step(results);
  double seconds = 0, tokens = 0, evaluations = 0;
  for (const TrialResult& trial : results.trials) {
    if (trial.curve.empty()) continue;
    seconds = std::max(seconds, trial.curve.back().cpu_seconds);
    tokens = std::max(tokens, tokens_per_step(results.plan, trial.variant) * steps);
    evaluations = std::max(evaluations, static_cast<double>(trial.curve.size()));
  }
  Horizontal x{{}, count_unit(tokens), time_unit(seconds), evaluations >= 8};
  x.axes.push_back({"whole run", "training step"});
  if (x.halved) x.axes.push_back({"second half", "training step", steps / 2});
  if (!with_costs) return x;
  x.axes.push_back({"tokens", x.tokens.name.empty() ? "tokens seen" : concat("tokens seen (", x.tokens.name, ")")});
  x.axes.push_back({"time", concat("processor time of training (", x.time.name, ")")});
  return x;
}

Series series_of(const std::vector<MeanPoint>& points, const Horizontal& x, double tokens_a_step) {
  Series series;
  series.x.resize(x.axes.size());
  const size_t steps = x.halved ? 2 : 1;
  const bool band = !points.empty() && std::none_of(points.begin(), points.end(), [](const MeanPoint& point) {
    return std::isnan(point.standard_error);
  });
  for (const MeanPoint& point : points) {
    for (size_t i = 0; i < steps; ++i) series.x[i].push_back(point.step);
    if (x.axes.size() > steps) {
      series.x[steps].push_back(point.step * tokens_a_step / x.tokens.divisor);
      series.x[steps + 1].push_back(point.seconds / x.time.divisor);
    }
    series.y.push_back(point.loss);
    if (!band) continue;
    series.low.push_back(point.loss - point.standard_error);
    series.high.push_back(point.loss + point.standard_error);
  }
  return series;
}

// Over finished trials, or over what there is while none has finished.
Series mean_series(const ChartInput& input, size_t variant, const Horizontal& x) {
  Curves curves = curves_where(
      input.results, [&](const TrialResult& trial) { return trial.variant == variant && is_finished(trial); });
  if (curves.empty())
    curves = curves_where(input.results, [&](const TrialResult& trial) { return trial.variant == variant; });
  return series_of(mean_points(curves), x, tokens_per_step(input.results.plan, variant));
}

constexpr const char* y_title = "validation loss (nats per token)";

Caption loss_caption(const ChartInput& input) {
  const Plan& plan = input.results.plan;
  const std::string name = name_of(input.analysis.block);
  const std::string note =
      plan.folds.size() * plan.seeds.size() > 1
          ? concat("Mean over ", name, "s; bands are \xC2\xB1 1 standard error. Variation between ", name,
                   "s affects all variants equally, so judge differences by the paired chart below.")
          : "One trial per variant: there is no band.";
  return {"loss", "Validation loss during training", note,
          concat("Curves of validation loss against training step, one for each of ", input.grid.places.size(),
                 " variants.")};
}

}  // namespace

Figure loss_chart(const ChartInput& input, const Caption& caption) {
  const auto& variants = input.results.plan.variants;
  const Horizontal x = horizontal(input.results, true);
  LineChart chart{caption, x.axes, {y_title, true}, {}};
  for (size_t i = 0; i < variants.size(); ++i) {
    chart.series.push_back(mean_series(input, i, x));
    chart.series.back().label = variants[i].label;
    chart.series.back().style = input.styles.variants[i];
  }
  return figure(chart);
}

Figure loss_chart(const ChartInput& input) {
  if (input.grid.dimensions.size() != 2) return loss_chart(input, loss_caption(input));
  const Horizontal x = horizontal(input.results, false);
  Panels chart{loss_caption(input), x.axes, {y_title, true}, {}, 2};
  const size_t series = input.styles.series;
  const Dimension &lines = input.grid.dimensions[series], &panels = input.grid.dimensions[1 - series];
  for (size_t i = 0; i < panels.values.size(); ++i) {
    chart.panels.push_back({panels.label(i), {}});
    for (size_t j = 0; j < lines.values.size(); ++j) {
      Series each = mean_series(input, series == 0 ? input.grid.variant_at(j, i) : input.grid.variant_at(i, j), x);
      each.label = lines.label(j);
      each.style = input.styles.values[j];
      chart.panels.back().series.push_back(std::move(each));
    }
  }
  return figure(chart);
}

Figure block_panels(const ChartInput& input) {
  const Plan& plan = input.results.plan;
  const BlockKind block = input.analysis.block;
  const std::string name = name_of(block);
  std::set<int64_t> numbers;
  for (const TrialResult& trial : input.results.trials) numbers.insert(number_of(block, trial));
  const Horizontal x = horizontal(input.results, false);
  Panels chart{
      {concat(name, "s"), block == BlockKind::fold ? "Fold by fold" : "Seed by seed",
       concat("One panel for each ", block == BlockKind::fold ? "fold held out" : "seed", ", all on the same axes",
              block == BlockKind::fold && plan.seeds.size() > 1 ? "; means over seeds." : "."),
       concat("Small charts of validation loss against training step, one for each ", name, ".")},
      x.axes,
      {y_title, true},
      {}};
  for (const int64_t number : numbers) {
    chart.panels.push_back({concat(name, " ", number), {}});
    for (size_t i = 0; i < plan.variants.size(); ++i) {
      const auto here = [&](const TrialResult& trial) {
        return trial.variant == i && number_of(block, trial) == number;
      };
      Series series = series_of(mean_points(curves_where(input.results, here)), x, 0);
      series.low.clear(), series.high.clear();  // of seeds, not of folds
      const bool diverged =
          std::any_of(input.results.trials.begin(), input.results.trials.end(),
                      [&](const auto& trial) { return here(trial) && trial.record.status == TrialStatus::diverged; });
      if (diverged && !series.y.empty()) {
        for (auto& column : series.x) column.push_back(column.back());
        series.y.push_back(std::nan(""));
      }
      series.label = plan.variants[i].label;
      series.style = input.styles.variants[i];
      chart.panels.back().series.push_back(std::move(series));
    }
  }
  return figure(chart);
}

}  // namespace normlab
