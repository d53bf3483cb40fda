// The pages of a folder by their addresses, made when they are asked for and kept until something changes.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "normlab/serve/study_summary.h"

namespace normlab {

struct Answer {
  int status = 200;
  std::string body = {};
  std::string tag = {};     // changes with the body
  std::string policy = {};  // a content security policy beside the page's own
  double next_look = 5.0;   // seconds after which a page should ask again
};

// Safe to call from several threads: one page is made at a time, and a page that costs much processor time is made anew
// only after twenty times as long, so that open pages take at most a twentieth of one core from trainings.
class Pages {
 public:
  explicit Pages(const std::filesystem::path& folder) : folder_(folder), runs_(folder_), studies_(folder_) {}

  // `path` is that of the address, with its escapes and without a query: "/", "/study/...", "/run/...",
  // "/inspect/...".
  Answer get(const std::string& path);
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
  Answer inspect_answer(const std::filesystem::path& run) const;
  void forget_least_used();

  ServedFolder folder_;
  std::mutex mutex_;
  RunSummaries runs_;
  StudySummaries studies_;
  std::map<std::string, Kept> kept_;
};

}  // namespace normlab
