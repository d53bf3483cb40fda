// What `normlab inspect` found, as a page and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "normlab/probe/inspection.h"

namespace normlab {

struct InspectPage {
  std::string model;  // path of the checkpoint
  std::string scheme;
  int64_t step = 0;
  int64_t windows = 0, tokens = 0;  // tokens of a window
  std::string text;                 // where it is from
  std::string command;
  Inspection found;
  std::vector<AttentionMap> maps;
  std::vector<std::string> labels;    // of the tokens of the maps
  std::vector<std::string> warnings;  // of the watchdogs
};

std::string inspect_verdict(const InspectPage& page);
std::string inspect_html(const InspectPage& page);
nlohmann::ordered_json inspect_json(const InspectPage& page);

}  // namespace normlab
