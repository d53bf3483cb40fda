// The report page: one self-contained HTML file, the verdict first, then charts and tables, then how to repeat it.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/html.h"

namespace normlab {

// A number worth seeing at once: "-0.021 nats" over "p = 3 against p = 2".
struct KeyFigure {
  std::string value, label;
};

struct Section {
  std::string title;
  std::string text;          // a paragraph below the title, or empty
  std::vector<Html> blocks;  // render(chart), html(table), paragraph(), collapsed() ...
};

struct Link {
  std::string text, address;
};

struct Page {
  std::string title;
  std::string subtitle;    // what was compared: "7 values of p x 10 folds, 70 of 70 trials done"
  std::string setup = {};  // on what: sizes, data, machine; or empty
  std::string verdict;     // one sentence with its numbers
  std::string detail;      // what follows it, in smaller type, or empty
  std::vector<KeyFigure> figures;
  std::vector<std::string> notices;  // what is missing or doubtful
  std::vector<Section> sections;
  std::string command;              // repeats the study
  std::vector<std::string> footer;  // program version, machine, date
  bool wide = false;                // figures stand in columns, which may fill a large window
  // Of a page that `normlab serve` sends:
  bool live = false;             // looks for newer content while it is open
  std::vector<Link> trail = {};  // above the title: the pages that lead here
  Html progress = {};            // below the title: how far it is
};

std::string render(const Page& page);

// Of the page: nothing may be fetched from anywhere, a live page excepted, which may ask its own server; and no script
// may run but ours, whatever the page contains.
std::string security_policy(bool live);

}  // namespace normlab
