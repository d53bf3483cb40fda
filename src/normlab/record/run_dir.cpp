// The folder of a run.
#include "normlab/record/run_dir.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-";
constexpr size_t step_digits = 6;

std::string step_name(int64_t step) {
  const std::string digits = concat(step);
  return concat(step_prefix, std::string(step_digits - std::min(step_digits, digits.size()), '0'), digits);
}

std::optional<int64_t> step_of(const fs::path& name) {
  const std::string text = name.string();
  if (!text.starts_with(step_prefix)) return std::nullopt;
  const auto step = parse_integer(std::string_view(text).substr(step_prefix.size()));
  return step && *step >= 0 && step_name(*step) == text ? std::optional<int64_t>(*step) : std::nullopt;
}

bool is_run(const fs::path& path) { return fs::is_regular_file(path / "config.toml"); }

// Refuses a folder with anything in it, less the lock and scraps of a process killed before it wrote anything.
void require_new(const fs::path& path) {
  if (!fs::exists(path)) return;
  if (!fs::is_directory(path)) throw UsageError(path.string(), "is a file, expected a folder. Choose another --out.");
  if (is_run(path)) {
    throw UsageError(path.string(), "holds another run; choose another --out, or pass --resume to resume it.");
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name == "run.lock" || name.starts_with(".staging-")) continue;
    if (name == "checkpoints" && fs::is_directory(entry) && fs::is_empty(entry)) continue;
    throw UsageError(path.string(), "is not empty, and not a run; choose another --out.");
  }
}

// A checkpoint that cannot be read has no loss to compare; its own reader says what is wrong with it.
std::optional<double> val_loss_in(const fs::path& state) {
  std::error_code unreadable;
  if (!fs::is_regular_file(state, unreadable)) return std::nullopt;
  const auto content = parse_json(read_file(state));
  if (!content.is_object() || !content.contains("val_loss") || !content["val_loss"].is_number()) return std::nullopt;
  return content["val_loss"].get<double>();
}

}  // namespace

std::optional<int64_t> checkpoint_step(const fs::path& folder) { return step_of(folder.filename()); }

RunDir RunDir::create(const fs::path& path) {
  require_new(path);
  std::error_code problem;
  std::vector<fs::path> made;  // by create_directories, which may make parents too
  for (fs::path each = fs::absolute(path); !fs::exists(each, problem) && !problem; each = each.parent_path())
    made.push_back(each);
  fs::create_directories(path, problem);
  if (problem) throw Error(path.string(), concat("cannot create the folder: ", problem.message(), "."));
  for (const fs::path& each : made) sync_folder_of(each);  // or a power cut could lose a run whose files were synced
  RunDir run(path);
  run.lock();
  require_new(path);  // once more: another process may have been faster
  fs::create_directories(run.checkpoints_folder());
  remove_stale_staging(run.checkpoints_folder());
  return run;
}

RunDir RunDir::open(const fs::path& path) {
  if (!is_run(path)) throw DataError(path.string(), "is not a run; expected a folder with config.toml.");
  return RunDir(path);
}

RunDir RunDir::open_locked(const fs::path& path) {
  RunDir run = open(path);
  run.lock();
  run.require_checkpoints();
  remove_stale_staging(run.checkpoints_folder());
  return run;
}

void RunDir::lock() {
  lock_.emplace(path_);
  remove_stale_staging(path_);
}

void RunDir::require_checkpoints() const {
  const fs::path folder = checkpoints_folder();
  std::error_code problem;
  const bool has_rows = fs::exists(metrics()) && fs::file_size(metrics()) > 0;
  const bool missing = !fs::exists(folder, problem) && !problem;
  if (!has_rows && missing && !fs::is_symlink(fs::symlink_status(folder))) fs::create_directories(folder);
  if (!checkpoints().empty() || !has_rows) return;
  throw DataError(folder.string(),
                  concat(missing ? "is missing" : "holds no checkpoint",
                         ", though metrics.jsonl has rows. Nothing was changed: put the checkpoints back, then resume; "
                         "or start a new run in another folder."));
}

fs::path RunDir::checkpoint(int64_t step) const { return checkpoints_folder() / step_name(step); }

std::vector<Checkpoint> RunDir::checkpoints() const {
  std::vector<Checkpoint> found;
  std::error_code problem;
  const fs::directory_iterator entries(checkpoints_folder(), problem);
  if (problem == std::errc::no_such_file_or_directory) return found;
  if (problem == std::errc::not_a_directory)
    throw DataError(checkpoints_folder().string(),
                    "is not a folder. Put the folder with the checkpoints in its place.");
  if (problem)
    throw Error(checkpoints_folder().string(),
                concat("the checkpoints cannot be listed: ", problem.message(), ". Try again once they can be."));
  for (const auto& entry : entries) {
    const auto step = step_of(entry.path().filename());
    if (!step) continue;
    found.push_back({*step, entry.path(), val_loss_in(entry.path() / "state.json")});
  }
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) { return a.step < b.step; });
  return found;
}

std::optional<Checkpoint> RunDir::latest() const {
  const auto all = checkpoints();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::optional<Checkpoint> RunDir::best() const {
  const auto step = linked_step("best");
  for (const Checkpoint& each : checkpoints()) {
    if (each.step == step) return each;
  }
  return std::nullopt;
}

void RunDir::set_link(const char* name, int64_t step) {
  if (!fs::is_directory(checkpoint(step))) throw Error(checkpoint(step).string(), "is not there to be linked to.");
  replace_symlink(checkpoints_folder() / name, step_name(step));
}

std::optional<int64_t> RunDir::linked_step(const char* name) const {
  std::error_code missing;
  return step_of(fs::read_symlink(checkpoints_folder() / name, missing));
}

fs::path RunDir::set_aside(const Checkpoint& checkpoint, const std::string& kind) {
  const fs::path name = checkpoints_folder() / concat(kind, "-", step_name(checkpoint.step));
  fs::path free = name;
  for (int n = 2; fs::exists(fs::symlink_status(free)); ++n) free = concat(name.string(), "-", n);
  std::error_code problem;
  fs::rename(checkpoint.path, free, problem);
  if (problem) throw Error(checkpoint.path.string(), concat("cannot be renamed: ", problem.message(), "."));
  sync_folder_of(free);
  return free;
}

void RunDir::relink(int64_t latest, int64_t best_step) {
  if (linked_step("latest") != latest) set_latest(latest);
  if (!linked_step("best") || best()) return;
  if (best_step >= 0 && fs::is_directory(checkpoint(best_step))) return set_best(best_step);
  fs::remove(checkpoints_folder() / "best");
}

void RunDir::apply_retention(size_t keep_last, size_t keep_best) {
  const auto all = checkpoints();
  std::set<int64_t> kept;
  for (const char* link : {"latest", "best"}) {
    if (const auto step = linked_step(link)) kept.insert(*step);
  }
  const size_t newest = std::min(std::max<size_t>(keep_last, 1), all.size());
  for (size_t i = all.size() - newest; i < all.size(); ++i) kept.insert(all[i].step);
  auto ranked = all;
  std::erase_if(ranked, [](const Checkpoint& each) { return !each.val_loss; });
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Checkpoint& a, const Checkpoint& b) { return *a.val_loss < *b.val_loss; });
  for (size_t i = 0; i < std::min(keep_best, ranked.size()); ++i) kept.insert(ranked[i].step);
  for (const Checkpoint& each : all) {
    if (!kept.contains(each.step)) remove_folder(each.path);
  }
}

}  // namespace normlab
