#include "normlab/cli/torch/inspect_page.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/heat_map.h"
#include "normlab/report/line_chart.h"
#include "normlab/report/page.h"
#include "normlab/report/panels.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

double value_of(const Inspection& found, Quantity quantity, HeadPlace place) {
  for (const Reading& each : found.readings)
    if (each.quantity == quantity && each.layer == place.layer && each.head == place.head) return each.value;
  return std::nan("");
}

size_t layers_of(const InspectPage& page) { return page.found.positions.size(); }
size_t heads_of(const InspectPage& page) { return page.found.floors.size() / layers_of(page); }
std::string name_of(HeadPlace place) { return concat("layer ", place.layer, ", head ", place.head); }

// A cell for every head: layers down, heads across.
Html grid_of(const InspectPage& page, Quantity quantity, const Caption& caption, int decimals) {
  HeatMap map{.caption = caption,
              .row_title = "layer",
              .column_title = "head",
              .value_title = row_of(quantity).key,
              .rows = {},
              .columns = {},
              .values = {},
              .decimals = decimals};
  for (size_t head = 0; head < heads_of(page); ++head) map.columns.push_back(concat(head));
  for (size_t layer = 0; layer < layers_of(page); ++layer) {
    map.rows.push_back(concat(layer));
    map.values.emplace_back();
    for (size_t head = 0; head < heads_of(page); ++head)
      map.values.back().push_back(value_of(page.found, quantity, {static_cast<int>(layer), static_cast<int>(head)}));
  }
  return render(map);
}

Table head_table(const InspectPage& page) {
  constexpr Quantity shown[] = {Quantity::relative_entropy, Quantity::entropy,   Quantity::min_entropy,
                                Quantity::max_logit,        Quantity::min_logit, Quantity::logit_rms,
                                Quantity::logit_spread,     Quantity::saturated, Quantity::q_norm,
                                Quantity::k_norm,           Quantity::q_peak,    Quantity::k_peak};
  Table table{"Every head", {{"layer", {}, Align::left}, {"head", {}, Align::left}, {"entropy_floor"}}, {}};
  for (const Quantity quantity : shown) table.columns.push_back({row_of(quantity).key});
  for (const EntropyFloor& floor : page.found.floors) {
    table.rows.push_back(
        {text_cell(concat(floor.place.layer)), text_cell(concat(floor.place.head)), number_cell(floor.value, 3)});
    for (const Quantity quantity : shown)
      table.rows.back().push_back(number_cell(value_of(page.found, quantity, floor.place), 3));
  }
  return table;
}

Table layer_table(const InspectPage& page) {
  std::vector<Quantity> shown;
  for (const Reading& each : page.found.readings)
    if (each.head < 0 && each.layer >= 0 && std::find(shown.begin(), shown.end(), each.quantity) == shown.end())
      shown.push_back(each.quantity);
  Table table{"Every layer", {{"layer", {}, Align::left}}, {}};
  for (const Quantity quantity : shown)
    table.columns.push_back({concat(row_of(quantity).group, "/", row_of(quantity).key)});
  for (int layer = 0; layer <= static_cast<int>(layers_of(page)); ++layer) {
    table.rows.push_back({text_cell(concat(layer))});
    for (const Quantity quantity : shown)
      table.rows.back().push_back(number_cell(value_of(page.found, quantity, {layer, -1}), 3));
  }
  return table;
}

Html map_of(const InspectPage& page, const AttentionMap& of) {
  return render(HeatMap{
      .caption = {concat("map-", of.place.layer, "-", of.place.head), concat("Attention of ", name_of(of.place)),
                  concat("Weights of the first window, as they are; relative entropy of the head ",
                         significant(value_of(page.found, Quantity::relative_entropy, of.place), 3), "."),
                  "How much each token, a row, attends to each earlier token, a column."},
      .row_title = "query",
      .column_title = "key",
      .value_title = "attention weight",
      .rows = page.labels,
      .columns = page.labels,
      .values = of.weights});
}

Html position_chart(const InspectPage& page, const Caption& caption, const char* y_title,
                    double PositionPoint::*value) {
  LineChart chart{caption, {{"position", "position of the query in its window"}}, {y_title, false}, {}};
  const auto styles = ordered_styles(layers_of(page));
  for (size_t layer = 0; layer < layers_of(page); ++layer) {
    Series series{.label = concat("layer ", layer), .style = styles[layer], .x = {{}}, .y = {}};
    for (size_t i = 1; i < page.found.positions[layer].size(); ++i) {  // the first query sees itself only
      series.x[0].push_back(static_cast<double>(i));
      series.y.push_back(page.found.positions[layer][i].*value);
    }
    chart.series.push_back(std::move(series));
  }
  return render(chart);
}

Html spectrum_chart(const InspectPage& page) {
  Panels chart{{"spectra", "Singular values of W_q\xE1\xB5\x80 W_k",
                "One panel per layer, one curve per head, each as a share of its largest value.",
                "Falling curves of singular values, one for each head."},
               {{"index", "index of the singular value"}},
               {"share of the largest", true},
               {},
               3};
  const auto styles = ordered_styles(heads_of(page));
  for (const Spectrum& each : page.found.spectra) {
    if (each.place.head == 0) chart.panels.push_back({concat("layer ", each.place.layer), {}});
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

Table spectrum_table(const InspectPage& page) {
  Table table{"Spectra of W_q\xE1\xB5\x80 W_k",
              {{"layer", {}, Align::left},
               {"head", {}, Align::left},
               {"largest", "largest"},
               {"energy of the first", "share_1"},
               {"of the first 4", "share_4"},
               {"of the first 10", "share_10"}},
              {}};
  for (const Spectrum& each : page.found.spectra)
    table.rows.push_back({text_cell(concat(each.place.layer)), text_cell(concat(each.place.head)),
                          number_cell(each.values.front(), 4), number_cell(each.share(1), 3),
                          number_cell(each.share(4), 3), number_cell(each.share(10), 3)});
  return table;
}

Table definition_table() {
  Table table{"Definitions", {{"name", {}, Align::left}, {"definition", {}, Align::left}}, {}};
  for (const QuantityRow& row : quantities())
    table.rows.push_back({text_cell(concat(row.group, "/", row.key)), text_cell(row.definition)});
  return table;
}

}  // namespace

std::string inspect_verdict(const InspectPage& page) {
  const std::vector<HeadPlace> notable = notable_heads(page.found.readings);
  const auto entropy = [&](HeadPlace place) {
    return significant(value_of(page.found, Quantity::relative_entropy, place), 3);
  };
  double largest = -INFINITY;
  HeadPlace at;
  for (const EntropyFloor& each : page.found.floors)
    if (const double logit = value_of(page.found, Quantity::max_logit, each.place); logit > largest)
      largest = logit, at = each.place;
  if (notable.size() < 2) return concat("One head: largest logit ", significant(largest, 4), ".");
  return concat("The sharpest head is ", name_of(notable[0]), " with ", entropy(notable[0]),
                " of the largest entropy possible, the flattest ", name_of(notable[1]), " with ", entropy(notable[1]),
                "; the largest logit is ", significant(largest, 4), ", in ", name_of(at), ".");
}

std::string inspect_html(const InspectPage& page) {
  Page out{.title = concat("Attention of ", page.scheme, " at step ", page.step),
           .subtitle = concat(layers_of(page), " layers of ", heads_of(page), " heads, over ", page.windows,
                              " windows of ", page.tokens, " tokens of ", page.text),
           .verdict = inspect_verdict(page),
           .detail = concat("Loss on this text: ", fixed(page.found.loss, 4), " nats per token."),
           .figures = {},
           .notices = page.warnings,
           .sections = {},
           .command = page.command,
           .footer = {page.model}};
  Section heads{"Every head", "", {}}, maps{"Where heads look", "", {}};
  heads.blocks.push_back(grid_of(
      page, Quantity::relative_entropy,
      {"entropy", "Relative entropy", "0 is one key, 1 is uniform.", "The relative entropy of every head."}, 2));
  heads.blocks.push_back(grid_of(page, Quantity::max_logit,
                                 {"logits", "Largest logit", "Over all windows, queries and visible keys.",
                                  "The largest attention logit of every head."},
                                 1));
  heads.blocks.push_back(collapsed("Table of every head", html(head_table(page))));
  heads.blocks.push_back(collapsed("Table of every layer", html(layer_table(page))));
  out.sections.push_back(std::move(heads));
  for (const AttentionMap& each : page.maps) maps.blocks.push_back(map_of(page, each));
  out.sections.push_back(std::move(maps));
  if (page.tokens > 1)
    out.sections.push_back(
        {"Position by position",
         "",
         {position_chart(page,
                         {"position-entropy", "Relative entropy by position", "Mean over heads and windows.",
                          "Curves of relative entropy against position, one per layer."},
                         "relative entropy", &PositionPoint::relative_entropy),
          position_chart(page,
                         {"position-logits", "Largest logit by position", "Over heads and windows.",
                          "Curves of the largest logit against position, one per layer."},
                         "largest logit", &PositionPoint::max_logit)}});
  out.sections.push_back({"Spectra",
                          "Few large singular values mean that a head compares tokens along few directions.",
                          {spectrum_chart(page), collapsed("Table of spectra", html(spectrum_table(page)))}});
  out.sections.push_back(
      {"Definitions",
       "entropy_floor is the mean over rows of the lowest entropy that logits of the same spread allow.",
       {collapsed("What is measured", html(definition_table()))}});
  return render(out);
}

Json inspect_json(const InspectPage& page) {
  Json readings = Json::object(), floors = Json::array(), spectra = Json::array(), maps = Json::array(),
       positions = Json::array();
  for (const Reading& each : page.found.readings) readings[name_of(each)] = each.value;
  for (const EntropyFloor& each : page.found.floors)
    floors.push_back({{"layer", each.place.layer}, {"head", each.place.head}, {"entropy_floor", each.value}});
  for (const Spectrum& each : page.found.spectra)
    spectra.push_back({{"layer", each.place.layer}, {"head", each.place.head}, {"singular_values", each.values}});
  for (const AttentionMap& each : page.maps)
    maps.push_back({{"layer", each.place.layer}, {"head", each.place.head}, {"weights", each.weights}});
  for (size_t layer = 0; layer < layers_of(page); ++layer)
    for (size_t i = 0; i < page.found.positions[layer].size(); ++i)
      positions.push_back({{"layer", layer},
                           {"position", i},
                           {"max_logit", page.found.positions[layer][i].max_logit},
                           {"relative_entropy", page.found.positions[layer][i].relative_entropy}});
  return {{"checkpoint", page.model},
          {"step", page.step},
          {"scheme", page.scheme},
          {"text", page.text},
          {"windows", page.windows},
          {"tokens", page.tokens},
          {"loss", page.found.loss},
          {"verdict", inspect_verdict(page)},
          {"warnings", page.warnings},
          {"readings", readings},
          {"entropy_floors", floors},
          {"positions", positions},
          {"spectra", spectra},
          {"map_tokens", page.labels},
          {"maps", maps}};
}

}  // namespace normlab
