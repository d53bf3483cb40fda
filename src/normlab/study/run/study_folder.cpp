#include "normlab/study/run/study_folder.h"

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/study/run/trial.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// A process killed before it stored the plan leaves a lock and scraps.
void require_study_or_nothing(const fs::path& folder) {
  if (!fs::exists(folder) || is_study(folder)) return;
  if (!fs::is_directory(folder))
    throw UsageError(folder.string(), "is a file, expected a folder. Choose another --out.");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name != "study.lock" && !name.starts_with(".staging-"))
      throw UsageError(folder.string(), "is not empty, and not a study; choose another --out.");
  }
}

void check_trials(const Plan& plan, const std::string& data_sha256) {
  for (const Trial& trial : plan.trials) {
    require_same_trial(trial);
    const TrialRecord record = read_trial(trial);
    if (record.ended() && record.data_sha256 != data_sha256)
      throw DataError(trial.folder.string(),
                      "the text has changed since this trial was run. Resume with the text the "
                      "study was started with, or choose another --out.");
  }
}

}  // namespace

bool is_study(const fs::path& folder) { return fs::is_regular_file(folder / "study.toml"); }

FolderLock take_study_folder(const Plan& plan, const std::string& data_sha256) {
  require_study_or_nothing(plan.folder);
  std::error_code problem;
  fs::create_directories(plan.folder, problem);
  if (problem) throw Error(plan.folder.string(), concat("cannot create the folder: ", problem.message(), "."));
  FolderLock lock(plan.folder, "study.lock");
  require_study_or_nothing(plan.folder);  // once more: another process may have been faster
  remove_stale_staging(plan.folder);
  if (is_study(plan.folder)) require_this_version(load_plan(plan.folder));
  check_trials(plan, data_sha256);
  const std::string content = to_toml(plan.spec);
  const fs::path file = plan.folder / "study.toml";
  if (!fs::exists(file) || read_file(file) != content) write_file_atomically(file, content);
  return lock;
}

}  // namespace normlab
