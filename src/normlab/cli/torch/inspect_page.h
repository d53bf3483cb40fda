// What `normlab inspect` found, as a page.
#pragma once

#include <string>
#include <vector>

#include "normlab/probe/inspection.h"

namespace normlab {

struct InspectPage {
  std::string model;  // path of the checkpoint
  std::string scheme;
  std::string setup;  // sizes of the model and what it was trained on
  int64_t step = 0;
  int64_t sequences = 0;  // windows of a language model, pairs of a translator
  int64_t tokens = 0;     // of a window; 0 for pairs, whose lengths differ
  std::string text;       // where it is from
  std::string command;
  Inspection found;
  std::vector<AttentionMap> maps;           // every head over one sequence, or the start of it
  std::vector<HeadPlace> heads;             // the first is shown at first; the data has the maps of all
  std::vector<std::string> target, source;  // tokens of the maps; `source` only of a translator's encoder
  std::vector<std::string> warnings;        // of the watchdogs
};

std::string inspect_html(const InspectPage& page);

}  // namespace normlab
