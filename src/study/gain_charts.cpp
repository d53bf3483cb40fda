// The learned gains of a study as charts.
#include "study/gain_charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "report/dot_chart.h"
#include "report/scale.h"
#include "study/study_text.h"

namespace normlab {
namespace {

// The gains of one layer, a mean for each block.
std::vector<double> gains_of(const StudyResults& results, size_t variant, int layer) {
  const BlockKind block = block_of(results.plan);
  std::map<int64_t, std::vector<double>> by_block;
  for (const TrialResult& trial : results.trials)
    for (const LayerGain& gain : trial.gains)
      if (trial.variant == variant && gain.layer == layer) by_block[number_of(block, trial)].push_back(gain.value);
  std::vector<double> values;
  for (const auto& [number, of_block] : by_block) values.push_back(mean(of_block));
  return values;
}

double gain_at_start(const Plan& plan, size_t variant) {
  const auto trial =
      std::find_if(plan.trials.begin(), plan.trials.end(), [&](const Trial& each) { return each.variant == variant; });
  const Config& config = trial->config;
  if (config.norm.gain == GainSharing::none || !config.norm.learn_gain) return not_a_number;
  return initial_gain(config.norm, {config.model.d_head, config.model.n_heads, config.model.seq_len});
}

DotSeries layer_series(const ChartInput& input, const std::vector<size_t>& variants, int layer) {
  DotSeries series;
  series.label = layer < 0 ? "all layers" : str("layer ", layer);
  for (const size_t variant : variants) {
    const std::vector<double> values = gains_of(input.results, variant, layer);
    series.mean.push_back(values.empty() ? not_a_number : mean(values));
    series.values.push_back(values);
    const bool spread = values.size() > 1;
    const Interval interval = spread ? corrected_resampled_t(values, input.analysis.test_train_ratio).interval
                                     : Interval{not_a_number, not_a_number, 0};
    series.low.push_back(interval.low);
    series.high.push_back(interval.high);
  }
  return series;
}

DotSeries start_series(const ChartInput& input, const std::vector<size_t>& variants, const Style& style) {
  DotSeries series{.label = "at the start", .style = style, .mean = {}};
  for (const size_t variant : variants) series.mean.push_back(gain_at_start(input.results.plan, variant));
  return series;
}

// Gains that span more than a decade, as matched ones do, need a logarithmic axis.
bool spans_decade(const DotChart& chart) {
  Extent range;
  for (const DotSeries& series : chart.series)
    for (const double value : series.mean) range.include(value);
  return !range.empty() && range.low > 0 && range.high > 10 * range.low;
}

struct GainGroup {
  std::string title, id;
  std::string x_title;
  std::vector<size_t> variants;
  std::vector<std::string> categories;
};

Figure gain_chart(const ChartInput& input, const GainGroup& group, const std::set<int>& layers) {
  DotChart chart{{group.id, group.title,
                  str("Mean over ", name_of(input.analysis.block), "s with 95 % interval; faint dots are ",
                      name_of(input.analysis.block), "s. Layer 0 is nearest to the input."),
                  "The learned gain of each layer for each variant."},
                 group.categories,
                 group.x_title,
                 "gain of the attention logits",
                 {}};
  const std::vector<Style> styles = ordered_styles(layers.size());
  for (const int layer : layers) {
    chart.series.push_back(layer_series(input, group.variants, layer));
    chart.series.back().style = styles[chart.series.size() - 1];
  }
  Style start = ordered_styles(1, 0)[0];
  start.dash = "2 4";
  start.baseline = false;
  chart.series.push_back(start_series(input, group.variants, start));
  chart.log = spans_decade(chart);
  return figure(chart);
}

std::vector<GainGroup> gain_groups(const ChartInput& input) {
  const Grid& grid = input.grid;
  const size_t count = grid.places.size();
  if (grid.dimensions.size() != 2) {
    GainGroup all{"Learned gain of each layer", "gains", "", {}, {}};
    if (grid.dimensions.size() == 1) all.x_title = grid.dimensions[0].name;
    for (size_t i = 0; i < count; ++i) {
      all.variants.push_back(i);
      all.categories.push_back(grid.dimensions.size() == 1 ? grid.dimensions[0].values[i]
                                                           : input.results.plan.variants[i].label);
    }
    return {all};
  }
  const size_t series = input.styles.series;
  const Dimension &along = grid.dimensions[series], &across = grid.dimensions[1 - series];
  std::vector<GainGroup> groups;
  for (size_t i = 0; i < across.values.size(); ++i) {
    groups.push_back(
        {str("Learned gain of each layer, ", across.label(i)), str("gains-", i + 1), along.name, {}, along.values});
    for (size_t j = 0; j < along.values.size(); ++j)
      groups.back().variants.push_back(series == 0 ? grid.variant_at(j, i) : grid.variant_at(i, j));
  }
  return groups;
}

}  // namespace

std::vector<Figure> gain_charts(const ChartInput& input) {
  std::set<int> layers;
  for (const TrialResult& trial : input.results.trials)
    for (const LayerGain& gain : trial.gains) layers.insert(gain.layer);
  std::vector<Figure> figures;
  if (layers.empty()) return figures;
  for (const GainGroup& group : gain_groups(input)) figures.push_back(gain_chart(input, group, layers));
  return figures;
}

}  // namespace normlab
