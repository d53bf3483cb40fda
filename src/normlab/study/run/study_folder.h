// The folder of a study:
//   study.toml       the study as it was asked for
//   manifest.json    program, command line and machine of each `normlab compare`
//   study.lock       held by the `normlab compare` that works on it
//   trials/<variant>/fold03-seed1337/      a run, with trial.json when it has ended
//   trials/<variant>/fold03-seed1337.log   what its last session printed
#pragma once

#include <string>

#include "normlab/base/folder_lock.h"
#include "normlab/study/run/plan.h"

namespace normlab {

bool is_study(const std::filesystem::path& folder);

// Makes the folder or takes it up, for as long as the lock lives, and stores the plan. Nothing is changed when it is
// refused: a folder with other things in it, in use, of another version, or with trials that were run under another
// configuration or on another text.
FolderLock take_study_folder(const Plan& plan, const std::string& data_sha256);

}  // namespace normlab
