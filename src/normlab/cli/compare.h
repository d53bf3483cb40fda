// normlab compare: what its parts share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/cli/child_process.h"
#include "normlab/cli/verbs.h"
#include "normlab/ranks/ranks.h"
#include "normlab/study/run/schedule.h"

namespace normlab {

struct CompareOptions {
  ConfigOptions config;
  std::vector<std::string> folders = {};  // a study to resume, or finished runs
  std::string out = {}, budget = {};
  std::vector<std::string> schemes = {};  // of a study without a recipe
  int jobs = 0, nice = 10;
  std::filesystem::path program = {};  // that runs the trials
  RankGroup* ranks = nullptr;          // that run them, if mpirun has started several
  bool dry_run = false, prepare = false, serve = false, json = false, quiet = false;
};

std::string size_of(const Plan& plan);  // "4 variants x 3 folds x 1 seed = 12 trials"
nlohmann::ordered_json summary_of(const Plan& plan, const StudyProgress& progress);  // trials by status

// The plan and the time it will take; nothing is written.
Exit dry_run(const Plan& plan, const StudyText& text, const CompareOptions& options);

// `normlab serve` of a study while it runs: started with its folder, ended with its scope.
class StudyServer {
 public:
  explicit StudyServer(const std::string& study);
  void show_end() const;  // stays until open pages have seen how the study ended

 private:
  ChildProcess server_;
};

// Finished runs beside each other, as a page and a table.
Exit compare_runs(const CompareOptions& options);

}  // namespace normlab
