// What `normlab inspect` found, in words, tables and JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "normlab/cli/torch/inspect_page.h"
#include "normlab/report/table.h"

namespace normlab {

std::string name_of(HeadPlace place);  // "layer 0, head 3", "cross-attention layer 0, head 3"
double value_of(const InspectPage& page, Quantity quantity, HeadPlace place);  // head -1: of the layer; NaN: none
std::string sequences_text(const InspectPage& page);                           // "8 windows of 64 tokens", "8 pairs"

std::string inspect_verdict(const InspectPage& page);
Table attention_table(const InspectPage& page);  // one row per attention: what a newcomer looks at first
Table head_table(const InspectPage& page);
Table layer_table(const InspectPage& page);
Table spectrum_table(const InspectPage& page);
Table definition_table();
nlohmann::ordered_json inspect_json(const InspectPage& page);

}  // namespace normlab
