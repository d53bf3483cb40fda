// Small pieces of served pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "normlab/report/html.h"
#include "normlab/serve/run_summary.h"

namespace normlab {

std::string run_address(const std::string& path);  // path: relative to the folder, as find() takes it before encoding
std::string study_address(const std::string& path);
std::string inspect_address(const std::string& path);

Html bar(double share);
Html state_mark(RunState state);
Html time_mark(int64_t seconds);  // since 1970; "12 s ago" once the script runs
Html anchor(const std::string& text, const std::string& address);
Html post_form(const std::string& address, const std::string& text);  // a button

std::string loss_text(const std::optional<double>& loss);  // 1.2345, or a dash
std::string percent(double share);                         // "42 %"; 100 only at the end

// A bar over what is said below it, parts of a line.
Html progress_block(RunState state, double share, const std::vector<Html>& said);
Html plain(const std::string& text);  // escaped

// A row of the list of runs or studies.
struct Entry {
  std::string name, address, note;
  RunState state;
  double share;
  std::string progress;  // "12 of 21 trials"
  std::string loss, loss_note;
  std::string left;  // "4 min"
  int64_t changed;
};
Html entry_table(const std::vector<Entry>& entries, const std::string& what);

}  // namespace normlab
