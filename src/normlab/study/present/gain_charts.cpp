// The learned gains and p of a study as charts.
#include "normlab/study/present/gain_charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "normlab/base/text.h"
#include "normlab/report/dot_chart.h"
#include "normlab/report/scale.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

// What a layer learns besides its weights.
struct Learned {
  std::vector<LayerValue> TrialResult::*values;
  double (*at_start)(const Config& config);
  std::string id, name, axis;
};

// The values of one layer, a mean for each block.
std::vector<double> values_of(const StudyResults& results, const Learned& learned, size_t variant, int layer) {
  const BlockKind block = block_of(results.plan);
  std::map<int64_t, std::vector<double>> by_block;
  for (const TrialResult& trial : results.trials)
    for (const LayerValue& each : trial.*learned.values)
      if (trial.variant == variant && each.layer == layer) by_block[number_of(block, trial)].push_back(each.value);
  std::vector<double> values;
  for (const auto& [number, of_block] : by_block) values.push_back(mean(of_block));
  return values;
}

double gain_at_start(const Config& config) {
  if (config.norm.gain == GainSharing::none || !config.norm.learn_gain) return not_a_number;
  return initial_gain(config.norm, {config.model.d_head, config.model.n_heads, config.model.seq_len});
}

double p_at_start(const Config& config) { return config.norm.learn_p ? config.norm.p : not_a_number; }

const Config& config_of_variant(const Plan& plan, size_t variant) {
  return std::find_if(plan.trials.begin(), plan.trials.end(),
                      [&](const Trial& each) { return each.variant == variant; })
      ->config;
}

DotSeries layer_series(const ChartInput& input, const Learned& learned, const std::vector<size_t>& variants,
                       int layer) {
  DotSeries series;
  series.label = layer < 0 ? "all layers" : concat("layer ", layer);
  for (const size_t variant : variants) {
    const std::vector<double> values = values_of(input.results, learned, variant, layer);
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

DotSeries start_series(const ChartInput& input, const Learned& learned, const std::vector<size_t>& variants,
                       const Style& style) {
  DotSeries series{.label = "at the start", .style = style, .mean = {}};
  for (const size_t variant : variants)
    series.mean.push_back(learned.at_start(config_of_variant(input.results.plan, variant)));
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

Figure gain_chart(const ChartInput& input, const Learned& learned, const GainGroup& group,
                  const std::set<int>& layers) {
  DotChart chart{{group.id, group.title,
                  concat("Mean over ", name_of(input.analysis.block), "s with 95 % interval; faint dots are ",
                         name_of(input.analysis.block), "s. Layer 0 is nearest to the input."),
                  concat("The learned ", learned.name, " of each layer for each variant.")},
                 group.categories,
                 group.x_title,
                 learned.axis,
                 {}};
  const std::vector<Style> styles = ordered_styles(layers.size());
  for (const int layer : layers) {
    chart.series.push_back(layer_series(input, learned, group.variants, layer));
    chart.series.back().style = styles[chart.series.size() - 1];
  }
  Style start = ordered_styles(1, 0)[0];
  start.dash = "2 4";
  start.baseline = false;
  chart.series.push_back(start_series(input, learned, group.variants, start));
  chart.log = spans_decade(chart);
  return figure(chart);
}

std::vector<GainGroup> gain_groups(const ChartInput& input, const Learned& learned) {
  const Grid& grid = input.grid;
  const size_t count = grid.places.size();
  if (grid.dimensions.size() != 2) {
    GainGroup all{concat("Learned ", learned.name, " of each layer"), learned.id, "", {}, {}};
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
    groups.push_back({concat("Learned ", learned.name, " of each layer, ", across.label(i)),
                      concat(learned.id, "-", i + 1),
                      along.name,
                      {},
                      along.values});
    for (size_t j = 0; j < along.values.size(); ++j)
      groups.back().variants.push_back(series == 0 ? grid.variant_at(j, i) : grid.variant_at(i, j));
  }
  return groups;
}

void add_charts(const ChartInput& input, const Learned& learned, std::vector<Figure>& figures) {
  std::set<int> layers;
  for (const TrialResult& trial : input.results.trials)
    for (const LayerValue& each : trial.*learned.values) layers.insert(each.layer);
  if (layers.empty()) return;
  for (const GainGroup& group : gain_groups(input, learned))
    figures.push_back(gain_chart(input, learned, group, layers));
}

}  // namespace

std::vector<Figure> gain_charts(const ChartInput& input) {
  std::vector<Figure> figures;
  add_charts(input, {&TrialResult::gains, gain_at_start, "gains", "gain", "gain of the attention logits"}, figures);
  add_charts(input, {&TrialResult::p, p_at_start, "learned-p", "p", "p of the Lp norm"}, figures);
  return figures;
}

}  // namespace normlab
