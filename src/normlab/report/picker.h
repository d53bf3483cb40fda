// A picker: grids of buttons on a colour ramp, each of which shows one of several panels. It is a form of radio buttons
// and needs no script; without the style rules of the page every panel shows.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/html.h"

namespace normlab {

struct Choice {
  std::string name;  // spoken, and the panel's heading: "layer 0, head 3"
  std::string text;  // on the button
  double share = 0;  // of the ramp, from 0 to 1
  Html panel;
};

struct ChoiceGrid {
  std::string title;  // or empty
  std::string row_title, column_title;
  std::vector<std::vector<Choice>> rows;
};

struct Picker {
  std::string id;
  std::string title;
  std::string note;  // what text and colour of a button are
  std::vector<ChoiceGrid> grids;
  std::size_t chosen = 0;  // counted through all grids, row by row
};

Html html(const Picker& picker);

}  // namespace normlab
