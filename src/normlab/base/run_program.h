// Other programs, run to their end without a shell, and a folder for their files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/base/stop.h"

namespace normlab {

// Removed with what it holds at the end of its scope.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct ProgramOptions {
  std::filesystem::path log;    // takes what the program writes
  int nice = 0;                 // above 0: gives way to other programs
  StopToken stop = never_stop;  // the program is killed once a stop is wanted
};

// Runs a program, found on PATH unless it has a slash, with nothing to read. Error about `task` with the last line that
// it wrote unless it succeeds.
void run_program(const std::string& task, const std::vector<std::string>& arguments, const ProgramOptions& options);

}  // namespace normlab
