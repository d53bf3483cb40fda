#include "normlab/serve/list_page.h"

#include <algorithm>

#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/serve/markup.h"
#include "normlab/study/run/study_folder.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr size_t most_folders = 20000;
constexpr size_t most_entries = 1000;
constexpr int deepest = 8;

class Search {
 public:
  explicit Search(FoundFolders& found) : found_(found) {}

  void look(const fs::path& folder, int depth) {
    if (++seen_ > most_folders || depth > deepest || found_.runs.size() + found_.studies.size() >= most_entries) {
      found_.complete = false;
      return;
    }
    std::error_code problem;
    if (fs::is_regular_file(folder / "study.toml", problem)) {
      found_.studies.push_back(folder);
      if (is_study(folder / "tuning")) found_.studies.push_back(folder / "tuning");
      return;
    }
    if (fs::is_regular_file(folder / "config.toml", problem)) {
      found_.runs.push_back(folder);
      return;
    }
    fs::directory_iterator entries(folder, fs::directory_options::skip_permission_denied, problem);
    for (const fs::directory_iterator end; !problem && entries != end; entries.increment(problem)) {
      std::error_code gone;
      const bool is_folder = fs::is_directory(entries->symlink_status(gone));
      if (is_folder && !entries->path().filename().string().starts_with('.')) look(entries->path(), depth + 1);
    }
  }

 private:
  FoundFolders& found_;
  size_t seen_ = 0;
};

std::string shown_name(const ServedFolder& folder, const fs::path& path) {
  const std::string name = folder.relative(path);
  return name.empty() ? folder.name() : name;
}

std::string left_text(const std::optional<double>& seconds) { return seconds ? spoken_time(*seconds) : ""; }

Entry entry_of(const ServedFolder& folder, const fs::path& path, const RunSummary& run) {
  return {.name = shown_name(folder, path),
          .address = run_address(folder.relative(path)),
          .note = run.problem.empty() ? run.scheme : run.problem,
          .state = run.state,
          .share = run.share(),
          .progress = concat("step ", run.step, " of ", run.max_steps),
          .loss = loss_text(run.best_loss),
          .loss_note = {},
          .left = left_text(run.seconds_left()),
          .changed = run.changed};
}

Entry entry_of(const ServedFolder& folder, const fs::path& path, const StudySummary& study) {
  return {.name = shown_name(folder, path),
          .address = study_address(folder.relative(path)),
          .note = study.problem.empty() ? study.title : study.problem,
          .state = study.state,
          .share = study.share,
          .progress = study.progress_text(),
          .loss = loss_text(study.best_loss),
          .loss_note = study.best_variant,
          .left = left_text(study.seconds_left),
          .changed = study.changed};
}

// What runs comes first, then what changed last.
void sort_entries(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    const bool first = a.state == RunState::running, second = b.state == RunState::running;
    return first != second ? first : a.changed > b.changed;
  });
}

size_t count_running(const std::vector<Entry>& entries) {
  return static_cast<size_t>(
      std::count_if(entries.begin(), entries.end(), [](const Entry& each) { return each.state == RunState::running; }));
}

}  // namespace

FoundFolders find_folders(const ServedFolder& folder) {
  FoundFolders found;
  Search(found).look(folder.root(), 0);
  std::sort(found.runs.begin(), found.runs.end());
  std::sort(found.studies.begin(), found.studies.end());
  return found;
}

LivePage list_page(const ServedFolder& folder, const FoundFolders& found, Summaries summaries, const HeldLocks& locks) {
  std::vector<Entry> studies, runs;
  for (const fs::path& path : found.studies)
    studies.push_back(entry_of(folder, path, summaries.studies.of(path, summaries.runs, locks)));
  for (const fs::path& path : found.runs) runs.push_back(entry_of(folder, path, summaries.runs.of(path, locks)));
  sort_entries(studies);
  sort_entries(runs);
  const size_t running = count_running(studies) + count_running(runs);
  LivePage out{.page = {.title = folder.name(),
                        .subtitle = concat(studies.size(), studies.size() == 1 ? " study, " : " studies, ",
                                           plural(runs.size(), "run"), "; ", running, " running"),
                        .verdict = {},
                        .detail = {},
                        .figures = {},
                        .notices = {},
                        .sections = {},
                        .command = {},
                        .footer = {folder.root().string()},
                        .live = true},
               .active = running > 0};
  if (!found.complete)
    out.page.notices.emplace_back("There are more folders than are listed here. Serve a smaller one.");
  if (studies.empty() && runs.empty())
    out.page.notices.emplace_back(
        "There is no run and no study here yet. They appear once normlab train or normlab compare writes one.");
  if (!studies.empty()) out.page.sections.push_back({"Studies", "", {entry_table(studies, "study")}});
  if (!runs.empty()) out.page.sections.push_back({"Runs", "", {entry_table(runs, "run")}});
  return out;
}

}  // namespace normlab
