// One pass over the rows of a run, then a chart for each quantity that they have.
#include "normlab/serve/run_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "normlab/base/text.h"
#include "normlab/record/metrics_rows.h"
#include "normlab/record/quantities.h"
#include "normlab/report/line_chart.h"
#include "normlab/report/scale.h"

namespace normlab {
namespace {

struct Curve {
  std::vector<double> steps, seconds, values;
  void add(const MetricsRow& row, std::string_view key, double time) {
    const double value = row.number(key, std::nan(""));
    if (!row.has(key) || (!steps.empty() && static_cast<double>(row.step) <= steps.back())) return;
    steps.push_back(static_cast<double>(row.step));
    seconds.push_back(time);
    values.push_back(value);
  }
};

// Of the step itself: key in the rows, title of the chart, of its axis, and whether it may be drawn on a log axis.
struct StepQuantity {
  const char *key, *title, *axis;
  bool log;
};
constexpr std::array<StepQuantity, 3> step_quantities = {
    StepQuantity{"grad_norm", "Gradient norm", "norm of the gradient before clipping", true},
    StepQuantity{"lr", "Learning rate", "learning rate", false},
    StepQuantity{"tokens_per_second", "Speed", "tokens/s", false}};

// Those of the probes that say most at a glance; the file has all of them.
struct ProbeQuantity {
  Quantity quantity;
  const char* title;
};
constexpr std::array<ProbeQuantity, 9> probe_quantities = {
    ProbeQuantity{Quantity::max_logit, "Largest logit"},
    ProbeQuantity{Quantity::relative_entropy, "Relative entropy of attention"},
    ProbeQuantity{Quantity::saturated, "Saturated rows"},
    ProbeQuantity{Quantity::gain, "Gain"},
    ProbeQuantity{Quantity::p, "Learned p"},
    ProbeQuantity{Quantity::grad_attn_out, "Gradient at the output of attention"},
    ProbeQuantity{Quantity::update_w_q, "Relative update of W_q"},
    ProbeQuantity{Quantity::stream_norm, "Norm of the stream"},
    ProbeQuantity{Quantity::log_partition, "ln Z of the output"}};

struct Curves {
  Curve loss, val_loss;
  std::array<Curve, step_quantities.size()> steps;
  // By quantity and layer, in the order of the model: "attn/layer03/max_logit".
  std::array<std::map<std::string, Curve, std::less<>>, probe_quantities.size()> probes;
};

void add_probe(const MetricsRow& row, double time, Curves& curves) {
  for (const MetricsRow::Value& value : row.values) {
    const auto slashes = std::count(value.key.begin(), value.key.end(), '/');
    if (slashes == 0 || slashes > 2) continue;  // not of a probe, or of one head
    for (size_t i = 0; i < probe_quantities.size(); ++i) {
      const QuantityRow& wanted = row_of(probe_quantities[i].quantity);
      const std::string_view group = wanted.group, key = wanted.key;
      const std::string_view rest = value.key.substr(std::min(value.key.size(), group.size()));
      if (!value.key.starts_with(group) || !rest.starts_with('/') || !rest.ends_with(key) ||
          rest[rest.size() - key.size() - 1] != '/')
        continue;
      auto found = curves.probes[i].find(value.key);
      if (found == curves.probes[i].end()) found = curves.probes[i].emplace(std::string(value.key), Curve()).first;
      found->second.add(row, value.key, time);
    }
  }
}

Curves read_curves(const std::filesystem::path& metrics) {
  Curves curves;
  double seconds = 0.0;
  for_each_row(metrics, [&](const MetricsRow& row) {
    seconds = row.number("train_seconds", seconds);
    curves.loss.add(row, "loss", seconds);
    curves.val_loss.add(row, "val_loss", seconds);
    for (size_t i = 0; i < step_quantities.size(); ++i) curves.steps[i].add(row, step_quantities[i].key, seconds);
    add_probe(row, seconds, curves);
  });
  return curves;
}

std::vector<double> divided(std::vector<double> values, double divisor) {
  for (double& value : values) value /= divisor;
  return values;
}

Html loss_figure(const Curves& curves) {
  double longest = 0.0;
  for (const Curve* curve : {&curves.loss, &curves.val_loss})
    if (!curve->seconds.empty()) longest = std::max(longest, curve->seconds.back());
  const Unit unit = time_unit(longest);
  LineChart chart{{"loss", "Loss during training", "Training loss of single batches; validation loss of held-out text.",
                   "Curves of training and validation loss against training step."},
                  {{"step", "training step"}, {"time", concat("training time (", unit.name, ")")}},
                  {"loss (nats per token)", true},
                  {}};
  const auto styles = category_styles(2, 1);
  const auto add = [&](const char* label, const Style& style, const Curve& curve) {
    if (curve.steps.empty()) return;
    chart.series.push_back({label, style, {curve.steps, divided(curve.seconds, unit.divisor)}, curve.values});
  };
  add("training", styles[0], curves.loss);
  add("validation", styles[1], curves.val_loss);
  return html(figure(chart));
}

Html step_figure(const StepQuantity& quantity, const Curve& curve) {
  LineChart chart{
      {slug(quantity.title), quantity.title, "", concat("A curve of ", quantity.axis, " against training step.")},
      {{"step", "training step"}},
      {quantity.axis, quantity.log},
      {}};
  chart.series.push_back({"this run", category_styles(1)[0], {curve.steps}, curve.values});
  return compact_html(figure(chart));
}

// "layer 3" of "attn/layer03/max_logit"; nothing of what the whole model has once.
std::string place_in(const std::string& key) {
  const auto parts = split(key, '/');
  if (parts.size() < 3) return "";
  std::string name = parts[1];
  const size_t digit = name.find_first_of("0123456789");
  if (digit == std::string::npos) return name;
  const auto number = parse_integer(name.substr(digit));
  return concat(name.substr(0, digit), " ", number.value_or(0));
}

Html probe_figure(const ProbeQuantity& quantity, const std::map<std::string, Curve, std::less<>>& curves) {
  const QuantityRow& row = row_of(quantity.quantity);
  LineChart chart{{concat("probe-", slug(quantity.title)), quantity.title, concat(row.group, "/", row.key),
                   concat("Curves of ", row.key, " against training step, one for each layer.")},
                  {{"step", "training step"}},
                  {row.key, false},
                  {}};
  const auto styles = ordered_styles(curves.size());
  for (const auto& [key, curve] : curves)
    chart.series.push_back({place_in(key), styles[chart.series.size()], {curve.steps}, curve.values});
  return compact_html(figure(chart));
}

}  // namespace

RunCharts draw_run(const std::filesystem::path& metrics) {
  const Curves curves = read_curves(metrics);
  RunCharts charts{.losses = loss_figure(curves), .steps = {}, .diagnostics = {}};
  for (size_t i = 0; i < step_quantities.size(); ++i)
    if (!curves.steps[i].steps.empty()) charts.steps.push_back(step_figure(step_quantities[i], curves.steps[i]));
  for (size_t i = 0; i < probe_quantities.size(); ++i)
    if (!curves.probes[i].empty()) charts.diagnostics.push_back(probe_figure(probe_quantities[i], curves.probes[i]));
  return charts;
}

}  // namespace normlab
