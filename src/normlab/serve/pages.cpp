#include "normlab/serve/pages.h"

#include <algorithm>
#include <ctime>

#include "normlab/base/error.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/serve/inspect_page.h"
#include "normlab/serve/list_page.h"
#include "normlab/serve/run_page.h"
#include "normlab/serve/study_page.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr auto look_interval_of_pages = std::chrono::milliseconds(900);
constexpr int share_of_core = 20;  // one part in twenty
constexpr size_t most_kept = 16;

Page message_page(const std::string& title, const std::string& message, bool live) {
  return {.title = title,
          .subtitle = {},
          .verdict = {},
          .detail = {},
          .figures = {},
          .notices = {message},
          .sections = {},
          .command = {},
          .footer = {},
          .live = live,
          .trail = {{"All runs and studies", "/"}}};
}

Answer not_found() {
  return {.status = 404,
          .body = shared_text(render(message_page("Not found", "There is no run or study at this address.", false)))};
}

// Of this thread: on a busy machine a page takes long without costing much.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string tag_of(const std::string& body) { return concat("\"", sha256_hex(body).substr(0, 24), "\""); }

}  // namespace

std::optional<Pages::Target> Pages::target_of(const std::string& path) const {
  if (path == "/") return Target{folder_.root(), Target::Kind::list};
  const std::pair<std::string_view, Target::Kind> kinds[] = {
      {"/study/", Target::Kind::study}, {"/run/", Target::Kind::run}, {"/inspect/", Target::Kind::inspect}};
  for (const auto& [start, kind] : kinds) {
    if (!path.starts_with(start)) continue;
    const auto found = folder_.find(std::string_view(path).substr(start.size()));
    const char* file = kind == Target::Kind::study ? "study.toml" : "config.toml";
    std::error_code problem;
    if (!found || !fs::is_regular_file(*found / file, problem) || !folder_.holds(*found / file)) return std::nullopt;
    return Target{*found, kind};
  }
  return std::nullopt;
}

std::string Pages::fingerprint(const Target& target, const HeldLocks& locks) {
  switch (target.kind) {
    case Target::Kind::study:
      return studies_.fingerprint(target.folder, locks);
    case Target::Kind::run:
      return concat(RunSummaries::fingerprint(target.folder, locks), text_of(stamp_of(target.folder / "inspect.html")));
    case Target::Kind::inspect:  // is not kept
    case Target::Kind::list:
      break;
  }
  const FoundFolders found = find_folders(folder_);
  std::string text;
  for (const fs::path& study : found.studies) text += concat(study.string(), "\n", studies_.fingerprint(study, locks));
  for (const fs::path& run : found.runs) text += concat(run.string(), "\n", RunSummaries::fingerprint(run, locks));
  return text;
}

Answer Pages::make(const Target& target, const HeldLocks& locks) {
  const Summaries summaries{runs_, studies_};
  try {
    const LivePage made =
        target.kind == Target::Kind::list    ? list_page(folder_, find_folders(folder_), summaries, locks)
        : target.kind == Target::Kind::study ? study_page(folder_, target.folder, summaries, locks)
                                             : run_page(folder_, target.folder, summaries, locks, inspections_);
    return {.body = shared_text(render(made.page)), .next_look = made.active ? active_seconds : idle_seconds};
  } catch (const std::exception& error) {  // also of a run that is being made or deleted: the page looks again
    return {.body = shared_text(render(message_page(folder_.relative(target.folder), error.what(), true))),
            .next_look = active_seconds};
  }
}

void Pages::forget_least_used() {
  if (kept_.size() <= most_kept) return;
  kept_.erase(std::min_element(kept_.begin(), kept_.end(),
                               [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

Answer Pages::post(const std::string& path) {
  const auto target = target_of(path);
  if (!target) return not_found();
  if (target->kind != Target::Kind::inspect) return {.status = 405};
  if (may_inspect(folder_, target->folder, inspections_)) inspections_.start(target->folder);
  return {.status = 303, .moved_to = path};
}

Answer Pages::get(const std::string& path) {
  const auto target = target_of(path);
  if (!target) return not_found();
  if (target->kind == Target::Kind::inspect) return inspect_answer(folder_, target->folder, inspections_);
  const std::lock_guard lock(mutex_);
  const Clock::time_point start = Clock::now();
  Kept& kept = kept_[path];
  kept.used = start;
  if (!kept.answer.tag.empty() && (start < kept.stale || start < kept.looked + look_interval_of_pages))
    return kept.answer;
  const auto cost_before = processor_time();
  const HeldLocks locks;
  std::string now = fingerprint(*target, locks);
  if (kept.answer.tag.empty() || now != kept.fingerprint) {
    kept.answer = make(*target, locks);
    kept.answer.tag = tag_of(*kept.answer.body);
    kept.fingerprint = std::move(now);
  }
  kept.looked = Clock::now();
  kept.stale = kept.looked + (processor_time() - cost_before) * (share_of_core - 1);
  Answer answer = kept.answer;
  answer.next_look = std::max(answer.next_look, std::chrono::duration<double>(kept.stale - kept.looked).count());
  forget_least_used();
  return answer;
}

}  // namespace normlab
