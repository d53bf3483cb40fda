// The first page: runs and studies in the folder.
#pragma once

#include <string>
#include <vector>

#include "normlab/report/page.h"
#include "normlab/serve/study_summary.h"

namespace normlab {

struct FoundFolders {
  std::vector<std::filesystem::path> runs, studies;  // sorted; trials of a study are not among the runs
  bool complete = true;                              // false: there are more folders than are looked at
};
// Folders below, and the folder itself, that hold a run or a study. Links are not followed.
FoundFolders find_folders(const ServedFolder& folder);

struct Summaries {
  RunSummaries& runs;
  StudySummaries& studies;
};
struct LivePage {
  Page page;
  bool active = false;  // something in it is running
};
LivePage list_page(const ServedFolder& folder, const FoundFolders& found, Summaries summaries, const HeldLocks& locks);

}  // namespace normlab
