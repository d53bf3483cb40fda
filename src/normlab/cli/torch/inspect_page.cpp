// What `normlab inspect` found, as a page: a picker of heads with their maps, then what all heads have in common.
#include "normlab/cli/torch/inspect_page.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "normlab/base/text.h"
#include "normlab/cli/torch/inspect_tables.h"
#include "normlab/report/heat_map.h"
#include "normlab/report/histogram.h"
#include "normlab/report/line_chart.h"
#include "normlab/report/page.h"
#include "normlab/report/panels.h"
#include "normlab/report/picker.h"
#include "normlab/report/scale.h"

namespace normlab {
namespace {

size_t heads_of(const InspectPage& page) { return page.found.floors.size() / page.found.places.size(); }
std::string id_of(HeadPlace place) { return concat(key_of({place.stack, place.layer}), "-", place.head); }
std::string capital_name(Stack stack) {
  return stack == Stack::encoder ? "Encoder" : stack == Stack::decoder ? "Decoder" : "Cross-attention";
}

const std::vector<std::string>& queries_of(const InspectPage& page, Stack stack) {
  return stack == Stack::encoder ? page.source : page.target;
}
const std::vector<std::string>& keys_of(const InspectPage& page, Stack stack) {
  return stack == Stack::encoder || stack == Stack::cross ? page.source : page.target;
}

HeatMap map_of(const InspectPage& page, HeadPlace place, const std::vector<std::vector<double>>& values) {
  return {.caption = {},
          .row_title = "query",
          .column_title = "key",
          .value_title = "",
          .rows = queries_of(page, place.stack),
          .columns = keys_of(page, place.stack),
          .values = values};
}

// A query that sees one key gives it weight 1 in every head: the ramp is that of the others.
std::optional<double> largest_choice(const std::vector<std::vector<double>>& weights) {
  double largest = 0.0;
  for (const auto& row : weights) {
    const auto visible = std::count_if(row.begin(), row.end(), [](double weight) { return !std::isnan(weight); });
    for (const double weight : row)
      if (visible > 1 && weight > largest) largest = weight;
  }
  return largest > 0.0 ? std::optional(largest) : std::nullopt;
}

Html attention_map(const InspectPage& page, const AttentionMap& of) {
  HeatMap map = map_of(page, of.place, of.weights);
  map.caption = {concat("attention-", id_of(of.place)), concat("Attention of ", name_of(of.place)),
                 "Each row sums to 1: where a query looks.",
                 "How much each query, a row, attends to each key, a column."};
  map.value_title = "attention weight";
  map.ramp_end = largest_choice(of.weights);
  return compact_html(figure(map));
}

Html logit_map(const InspectPage& page, const AttentionMap& of) {
  HeatMap map = map_of(page, of.place, of.logits);
  map.caption = {concat("logits-", id_of(of.place)), concat("Logits of ", name_of(of.place)),
                 "What the softmax reads, for the same tokens.", "The logit of each query, a row, and key, a column."};
  map.value_title = "logit";
  map.from_zero = false;
  return compact_html(figure(map));
}

Html logit_histogram(const InspectPage& page, const LogitHistogram& of) {
  const auto reading = [&](Quantity quantity) { return value_of(page, quantity, of.place); };
  const double total = std::accumulate(of.counts.begin(), of.counts.end(), 0.0);
  Histogram chart{
      .caption = {concat("histogram-", id_of(of.place)), "Histogram of its logits",
                  concat("Over ", sequences_text(page), ": from ", with_minus(significant(of.low, 3)), " to ",
                         with_minus(significant(of.high, 3)), ". Relative entropy ",
                         significant(reading(Quantity::relative_entropy), 2), "; saturated rows ",
                         significant(100 * reading(Quantity::saturated), 2), " %."),
                  concat("Shares of the logits of ", name_of(of.place), " in ", of.counts.size(), " bins.")},
      .x_title = "logit",
      .y_title = "share of visible keys",
      .low = of.low,
      .high = of.high,
      .shares = of.counts};
  for (double& share : chart.shares) share /= std::max(total, 1.0);
  return compact_html(figure(chart));
}

Html head_picker(const InspectPage& page) {
  Picker picker{.id = "heads",
                .title = "Pick a head",
                .note = "Numbers and colours: relative entropy, from 0 (one key) to 1 (uniform).",
                .grids = {},
                .chosen = 0};
  size_t number = 0;
  for (const EntropyFloor& each : page.found.floors) {
    const HeadPlace place = each.place;
    if (place.layer == 0 && place.head == 0)
      picker.grids.push_back({place.stack == Stack::layers ? "" : capital_name(place.stack), "layer", "head", {}});
    if (place.head == 0) picker.grids.back().rows.emplace_back();
    const double entropy = value_of(page, Quantity::relative_entropy, place);
    const auto map = std::find_if(page.maps.begin(), page.maps.end(), [&](const auto& m) { return m.place == place; });
    picker.grids.back().rows.back().push_back({name_of(place), std::isnan(entropy) ? "\xE2\x80\x93" : fixed(entropy, 2),
                                               entropy,
                                               Html{attention_map(page, *map).text + logit_map(page, *map).text +
                                                    logit_histogram(page, page.found.histograms[number]).text}});
    if (!page.heads.empty() && page.heads.front() == place) picker.chosen = number;
    ++number;
  }
  return html(picker);
}

// A cell for every head: layers down, heads across.
Html largest_logits(const InspectPage& page, Stack stack) {
  HeatMap map{.caption = {concat("largest-", name_of(stack)),
                          stack == Stack::layers ? "Largest logit of each head"
                                                 : concat(capital_name(stack), ": largest logit of each head"),
                          "Over all queries and visible keys.", "The largest attention logit of every head."},
              .row_title = "layer",
              .column_title = "head",
              .value_title = "largest logit",
              .rows = {},
              .columns = {},
              .values = {},
              .decimals = 1};
  for (size_t head = 0; head < heads_of(page); ++head) map.columns.push_back(concat(head));
  for (const Place& place : page.found.places) {
    if (place.stack != stack) continue;
    map.rows.push_back(concat(place.layer));
    map.values.emplace_back();
    for (size_t head = 0; head < heads_of(page); ++head)
      map.values.back().push_back(value_of(page, Quantity::max_logit, {place.layer, static_cast<int>(head), stack}));
    for (const double value : map.values.back()) map.from_zero = map.from_zero && !(value < 0);
  }
  return compact_html(figure(map));
}

Html position_chart(const InspectPage& page, Stack stack, const char* what, double PositionPoint::*value) {
  const std::string prefix = stack == Stack::layers ? "" : concat(capital_name(stack), ": ");
  LineChart chart{{concat(slug(what), "-by-position-", name_of(stack)),
                   prefix.empty() ? concat(value == &PositionPoint::max_logit ? "Largest logit" : "Relative entropy",
                                           " by position")
                                  : concat(prefix, what, " by position"),
                   concat(value == &PositionPoint::max_logit ? "Over heads and " : "Mean over heads and ",
                          page.tokens > 0 ? "windows." : "pairs."),
                   concat("Curves of ", what, " against position, one per layer.")},
                  {{"position", "position of the query"}},
                  {what, false},
                  {}};
  std::vector<size_t> numbers;
  for (size_t i = 0; i < page.found.places.size(); ++i)
    if (page.found.places[i].stack == stack) numbers.push_back(i);
  const auto styles = ordered_styles(numbers.size());
  for (size_t layer = 0; layer < numbers.size(); ++layer) {
    Series series{.label = concat("layer ", layer), .style = styles[layer], .x = {{}}, .y = {}};
    const auto& points = page.found.positions[numbers[layer]];
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::isnan(points[i].*value) || (i == 0 && std::isnan(points[i].relative_entropy))) continue;  // one key
      series.x[0].push_back(static_cast<double>(i));
      series.y.push_back(points[i].*value);
    }
    chart.series.push_back(std::move(series));
  }
  return compact_html(figure(chart));
}

Html spectrum_chart(const InspectPage& page) {
  Panels chart{{"spectra", "Singular values of W_q\xE1\xB5\x80 W_k",
                "One panel per attention, one curve per head, each as a share of its largest value.",
                "Falling curves of singular values, one for each head."},
               {{"index", "index of the singular value"}},
               {"share of the largest", true},
               {},
               3};
  const auto styles = ordered_styles(heads_of(page));
  for (const Spectrum& each : page.found.spectra) {
    if (each.place.head == 0) chart.panels.push_back({describe({each.place.stack, each.place.layer}), {}});
    Series series{.label = concat("head ", each.place.head),
                  .style = styles[static_cast<size_t>(each.place.head)],
                  .x = {{}},
                  .y = {}};
    for (size_t i = 0; i < each.values.size(); ++i) {
      series.x[0].push_back(static_cast<double>(i + 1));
      series.y.push_back(each.values[i] / each.values.front());
    }
    chart.panels.back().series.push_back(std::move(series));
  }
  return render(chart);
}

Section every_head(const InspectPage& page) {
  Section section{"Every head", "", {}};
  std::vector<Html> figures;
  for (const Stack stack : all_stacks) {
    const bool there = std::any_of(page.found.places.begin(), page.found.places.end(),
                                   [&](const Place& place) { return place.stack == stack; });
    if (!there) continue;
    figures.push_back(largest_logits(page, stack));
    figures.push_back(position_chart(page, stack, "relative entropy", &PositionPoint::relative_entropy));
    figures.push_back(position_chart(page, stack, "largest logit", &PositionPoint::max_logit));
  }
  section.blocks = {columns(figures), html(head_table(page)),
                    collapsed("Table of every layer", html(layer_table(page)))};
  return section;
}

}  // namespace

std::string inspect_html(const InspectPage& page) {
  Page out{.title = concat("Attention of ", page.scheme, " at step ", page.step),
           .subtitle = concat("Over ", sequences_text(page), " of ", page.text),
           .setup = page.setup,
           .verdict = inspect_verdict(page),
           .detail = concat("Loss on this text: ", fixed(page.found.loss, 3), " nats per token."),
           .figures = {},
           .notices = page.warnings,
           .sections = {},
           .command = page.command,
           .footer = {page.model},
           .wide = true};
  out.sections.push_back({"Where a head looks", "", {head_picker(page)}});
  out.sections.push_back(every_head(page));
  out.sections.push_back({"Spectra",
                          "Few large singular values mean that a head compares tokens along few directions.",
                          {spectrum_chart(page), collapsed("Table of spectra", html(spectrum_table(page)))}});
  out.sections.push_back(
      {"Definitions",
       "entropy_floor is the mean over rows of the lowest entropy that logits of the same spread allow.",
       {collapsed("What is measured", html(definition_table()))}});
  return render(out);
}

}  // namespace normlab
