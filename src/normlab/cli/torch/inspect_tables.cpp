// What `normlab inspect` found, in words, tables and JSON.
#include "normlab/cli/torch/inspect_tables.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/study/run/plan.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

Json place_json(HeadPlace place) {
  return {{"attention", name_of(place.stack)}, {"layer", place.layer}, {"head", place.head}};
}

Json with(Json object, const char* key, Json value) {
  object[key] = std::move(value);
  return object;
}

}  // namespace

std::string name_of(HeadPlace place) { return concat(describe({place.stack, place.layer}), ", head ", place.head); }

double value_of(const InspectPage& page, Quantity quantity, HeadPlace place) {
  for (const Reading& each : page.found.readings)
    if (each.quantity == quantity && each.stack == place.stack && each.layer == place.layer && each.head == place.head)
      return each.value;
  return std::nan("");
}

std::string sequences_text(const InspectPage& page) {
  const auto count = static_cast<size_t>(page.sequences);
  return page.tokens == 0 ? plural(count, "pair") : concat(plural(count, "window"), " of ", page.tokens, " tokens");
}

std::string inspect_verdict(const InspectPage& page) {
  const std::vector<HeadPlace> notable = notable_heads(page.found.readings);
  const auto entropy = [&](HeadPlace place) {
    return significant(value_of(page, Quantity::relative_entropy, place), 2);
  };
  double largest = -INFINITY;
  HeadPlace at;
  for (const EntropyFloor& each : page.found.floors)
    if (const double logit = value_of(page, Quantity::max_logit, each.place); logit > largest)
      largest = logit, at = each.place;
  if (notable.size() < 2) return concat("One head: largest logit ", significant(largest, 3), ".");
  return concat("The sharpest head is ", name_of(notable[0]), " with ", entropy(notable[0]),
                " of the largest possible entropy, the flattest ", name_of(notable[1]), " with ", entropy(notable[1]),
                "; the largest logit is ", significant(largest, 3), ", in ", name_of(at), ".");
}

Table attention_table(const InspectPage& page) {
  constexpr Quantity shown[] = {Quantity::relative_entropy, Quantity::saturated, Quantity::max_logit, Quantity::gain};
  Table table{"Attention, one row per layer", {{"attention", "attention", Align::left, Best::none}}, {}};
  for (const Quantity quantity : shown) table.columns.push_back({row_of(quantity).key});
  for (const Place& place : page.found.places) {
    table.rows.push_back({text_cell(describe(place))});
    for (const Quantity quantity : shown)
      table.rows.back().push_back(number_cell(value_of(page, quantity, {place.layer, -1, place.stack}), 3));
  }
  return table;
}

Table head_table(const InspectPage& page) {
  constexpr Quantity shown[] = {Quantity::relative_entropy, Quantity::entropy,   Quantity::min_entropy,
                                Quantity::max_logit,        Quantity::min_logit, Quantity::logit_rms,
                                Quantity::logit_spread,     Quantity::saturated, Quantity::q_norm,
                                Quantity::k_norm,           Quantity::q_peak,    Quantity::k_peak};
  Table table{concat("Every head, over ", sequences_text(page)), {{"head", {}, Align::left}, {"entropy_floor"}}, {}};
  for (const Quantity quantity : shown) table.columns.push_back({row_of(quantity).key});
  for (const EntropyFloor& floor : page.found.floors) {
    table.rows.push_back({text_cell(name_of(floor.place)), number_cell(floor.value, 3)});
    for (const Quantity quantity : shown)
      table.rows.back().push_back(number_cell(value_of(page, quantity, floor.place), 3));
  }
  return table;
}

Table layer_table(const InspectPage& page) {
  std::vector<Quantity> shown;
  for (const Reading& each : page.found.readings)
    if (each.head < 0 && each.layer >= 0 && std::find(shown.begin(), shown.end(), each.quantity) == shown.end())
      shown.push_back(each.quantity);
  Table table{concat("Every layer, over ", sequences_text(page)), {{"layer", {}, Align::left}}, {}};
  for (const Quantity quantity : shown)
    table.columns.push_back({concat(row_of(quantity).group, "/", row_of(quantity).key)});
  std::vector<Place> places = page.found.places;
  for (const Reading& each : page.found.readings)  // what the norm after the last layer reads
    if (each.layer >= 0 && std::none_of(places.begin(), places.end(), [&](Place place) {
          return place.stack == each.stack && place.layer == each.layer;
        }))
      places.push_back({each.stack, each.layer});
  for (const Place& place : places) {
    table.rows.push_back({text_cell(describe(place))});
    for (const Quantity quantity : shown)
      table.rows.back().push_back(number_cell(value_of(page, quantity, {place.layer, -1, place.stack}), 3));
  }
  return table;
}

Table spectrum_table(const InspectPage& page) {
  Table table{"Spectra of W_q\xE1\xB5\x80 W_k",
              {{"head", {}, Align::left},
               {"largest", "largest"},
               {"energy of the first", "share_1"},
               {"of the first 4", "share_4"},
               {"of the first 10", "share_10"}},
              {}};
  for (const Spectrum& each : page.found.spectra)
    table.rows.push_back({text_cell(name_of(each.place)), number_cell(each.values.front(), 4),
                          number_cell(each.share(1), 3), number_cell(each.share(4), 3),
                          number_cell(each.share(10), 3)});
  return table;
}

Table definition_table() {
  Table table{"Definitions", {{"name", {}, Align::left}, {"definition", {}, Align::left}}, {}};
  for (const QuantityRow& row : quantities())
    table.rows.push_back({text_cell(concat(row.group, "/", row.key)), text_cell(row.definition)});
  return table;
}

Json inspect_json(const InspectPage& page) {
  const Inspection& found = page.found;
  Json readings = Json::object(), floors = Json::array(), spectra = Json::array(), maps = Json::array(),
       positions = Json::array(), histograms = Json::array();
  for (const Reading& each : found.readings) readings[name_of(each)] = each.value;
  for (const EntropyFloor& each : found.floors)
    floors.push_back(with(place_json(each.place), "entropy_floor", each.value));
  for (const LogitHistogram& each : found.histograms)
    histograms.push_back(with(with(place_json(each.place), "range", {each.low, each.high}), "counts", each.counts));
  for (const Spectrum& each : found.spectra)
    spectra.push_back(with(place_json(each.place), "singular_values", each.values));
  for (const AttentionMap& each : page.maps)
    if (std::find(page.heads.begin(), page.heads.end(), each.place) != page.heads.end())
      maps.push_back(with(with(place_json(each.place), "weights", each.weights), "logits", each.logits));
  for (size_t i = 0; i < found.places.size(); ++i)
    for (size_t position = 0; position < found.positions[i].size(); ++position)
      positions.push_back({{"attention", name_of(found.places[i].stack)},
                           {"layer", found.places[i].layer},
                           {"position", position},
                           {"max_logit", found.positions[i][position].max_logit},
                           {"relative_entropy", found.positions[i][position].relative_entropy}});
  Json out = {{"checkpoint", page.model}, {"step", page.step}, {"scheme", page.scheme}, {"text", page.text}};
  if (page.tokens > 0)
    out["windows"] = page.sequences, out["tokens"] = page.tokens;
  else
    out["pairs"] = page.sequences;
  out.update({{"loss", found.loss},
              {"verdict", inspect_verdict(page)},
              {"warnings", page.warnings},
              {"readings", readings},
              {"entropy_floors", floors},
              {"logit_histograms", histograms},
              {"positions", positions},
              {"spectra", spectra},
              {"map_tokens", page.target}});
  if (page.tokens == 0) out["source_tokens"] = page.source;
  out["maps"] = maps;
  return out;
}

}  // namespace normlab
