// What is wrong with a run, a checkpoint, a study or a single file, in words; nothing is changed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace normlab {

struct Findings {
  std::vector<std::string> seen;    // "12 checkpoints", "300 rows of metrics"
  std::vector<std::string> faults;  // "[place] what is wrong, and what to do"
};

// DataError when the path is not there, or is nothing that can be checked.
Findings check_path(const std::filesystem::path& path);

}  // namespace normlab
