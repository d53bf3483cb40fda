// The pages of a folder by their addresses, made when they are asked for and kept until something changes.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "normlab/serve/answer.h"
#include "normlab/serve/inspections.h"
#include "normlab/serve/study_summary.h"

namespace normlab {

// Safe to call from several threads: one page is made at a time, and a page that costs much processor time is made anew
// only after twenty times as long, so that open pages take at most a twentieth of one core from trainings.
class Pages {
 public:
  // `compute` makes pages of `normlab inspect` for readers who ask; null: they get the command.
  explicit Pages(const std::filesystem::path& folder, Inspections::Compute compute = nullptr)
      : folder_(folder), runs_(folder_), studies_(folder_), inspections_(std::move(compute)) {}

  // `path` is that of the address, with its escapes and without a query: "/", "/study/...", "/run/...",
  // "/inspect/...".
  Answer get(const std::string& path);
  // A button: starts the inspection at "/inspect/..." and sends the reader there.
  Answer post(const std::string& path);
  const ServedFolder& folder() const { return folder_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    Answer answer;
    std::string fingerprint;
    Clock::time_point looked = {};  // for changes
    Clock::time_point stale = {};   // before this it is not made again
    Clock::time_point used = {};
  };
  // A page at an address: how to see that it has changed, and how to make it.
  struct Target {
    std::filesystem::path folder;
    enum class Kind { list, study, run, inspect } kind;
  };
  std::optional<Target> target_of(const std::string& path) const;
  std::string fingerprint(const Target& target, const HeldLocks& locks);
  Answer make(const Target& target, const HeldLocks& locks);
  void forget_least_used();

  ServedFolder folder_;
  std::mutex mutex_;
  RunSummaries runs_;
  StudySummaries studies_;
  Inspections inspections_;
  std::map<std::string, Kept> kept_;
};

}  // namespace normlab
