// Claims: which process runs a trial, for processes on many machines that share only the folder of the study.
//
// The claims on a trial are numbered files beside its folder: fold03-seed1337.claim-1, .claim-2, ... Creating the next
// number is how a trial is claimed, and only one process can: the file must not exist before. A claim is never taken
// from its owner; the next number replaces it once it was given back or its owner is dead. The claims on a trial are
// deleted when it has ended. While it runs, its owner rewrites its claim every few seconds. An owner on this machine is
// dead when its process is gone; one elsewhere when its claim did not change for a minute by this machine's clock, so
// clocks need not agree.
//
// What this needs of the file system: creating a file with O_EXCL is atomic, and a file that was written and closed on
// one machine is read anew by the next open on another (NFS version 3 and later, Lustre, GPFS, BeeGFS, local disks).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "normlab/base/stop.h"
#include "normlab/study/run/trial.h"

namespace normlab {

struct ClaimTimes {
  std::chrono::milliseconds beat = std::chrono::seconds(10);     // how often the owner rewrites its claim
  std::chrono::milliseconds silence = std::chrono::seconds(60);  // after which it counts as dead
};

enum class ClaimState {
  free,     // never claimed, or given back
  dead,     // its owner is gone
  held,     // its owner is alive
  unknown,  // not watched for long enough
};

struct ClaimView {
  ClaimState state = ClaimState::free;
  int number = 0;          // of the last claim; 0: there is none
  int deaths = 0;          // owners that died in a row
  std::string owner = {};  // "pid 12 on host"
};

// Looks at claims again and again, to see which owners are alive.
class ClaimWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ClaimWatch(ClaimTimes times = {}) : times_(times) {}
  ClaimView look(const Trial& trial, Clock::time_point now = Clock::now());
  const ClaimTimes& times() const { return times_; }

 private:
  struct Seen {
    int number = 0;
    std::string content;
    Clock::time_point since;
    bool changed = false;  // while it was watched
  };
  ClaimTimes times_;
  std::map<std::filesystem::path, Seen> seen_;
};

// A claim of this process on a trial, which must outlive it. At its end the trial is free for others.
class TrialClaim {
 public:
  // Nothing when another process was faster. `lost` is called, from a thread of the claim, when another process took
  // the trial over because this one was silent for too long.
  static std::unique_ptr<TrialClaim> take(const Trial& trial, const ClaimView& after, std::function<void()> lost,
                                          ClaimTimes times = {});
  TrialClaim(const TrialClaim&) = delete;
  TrialClaim& operator=(const TrialClaim&) = delete;
  ~TrialClaim();

 private:
  TrialClaim(const Trial& trial, int number, int deaths, std::function<void()> lost, ClaimTimes times);
  void beat_until_end(const std::function<void()>& lost);

  const Trial& trial_;
  const int number_, deaths_;
  const ClaimTimes times_;
  std::mutex mutex_;
  std::condition_variable end_wanted_;
  bool ended_ = false;
  std::thread beating_;
};

// The trial of a plan that this process is to run next, and its claim.
struct NextTrial {
  const Trial* trial = nullptr;
  std::unique_ptr<TrialClaim> claim;
};

struct NextOptions {
  bool wait = false;  // for trials that others run, in case their owners die
  StopToken stop = never_stop;
  std::function<void()> lost = [] {};
  std::function<bool(const Trial&)> skip = [](const Trial&) { return false; };
  ClaimTimes times = {};
};

// Of the trials that have neither ended nor crashed and that nobody runs, the longest. No trial when there is none, or
// when it is asked to stop. A trial whose owners died three times in a row is recorded as crashed.
NextTrial next_trial(const Plan& plan, const NextOptions& options);

// Claims this trial, once it is known whether another process runs it: then it is an Error.
std::unique_ptr<TrialClaim> claim_trial(const Trial& trial, const NextOptions& options);

}  // namespace normlab
