// Which trial a process that shares a study with others runs next.
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "normlab/base/error.h"
#include "normlab/base/folder_lock.h"
#include "normlab/base/text.h"
#include "normlab/study/run/claim.h"
#include "normlab/study/run/cost.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr int most_deaths = 3;
constexpr auto look_again = std::chrono::milliseconds(500);

bool is_settled(const Trial& trial) {
  const TrialRecord record = read_trial(trial);
  return record.ended() || record.status == TrialStatus::crashed || record.status == TrialStatus::damaged;
}

// A network file system may remember for half a minute that a file is missing. A change of the folder from here makes
// it look again.
void refresh(const Trial& trial) {
  if (!fs::is_directory(trial.folder)) return;
  const fs::path scrap = trial.folder / concat(".staging-look-", ::getpid());
  std::error_code ignored;
  fs::create_directory(scrap, ignored);
  fs::remove(scrap, ignored);
}

// A process that is being killed may hold the lock of its run for a moment after it has stopped counting as alive.
bool lock_is_free(const Trial& trial) {
  if (!fs::is_directory(trial.folder)) return true;
  for (int look = 0; look < 100; ++look) {
    try {
      const FolderLock lock(trial.folder);
      return true;
    } catch (const Error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  return false;
}

// The longest first, as in `normlab compare`. Only the order counts, so the size of the vocabulary may be a guess.
std::vector<const Trial*> by_length(const Plan& plan) {
  const std::vector<double> flops = training_flops(plan, /*vocab_size=*/256);
  std::vector<const Trial*> trials;
  for (const Trial& trial : plan.trials) trials.push_back(&trial);
  std::stable_sort(trials.begin(), trials.end(),
                   [&](const Trial* a, const Trial* b) { return flops[a->number - 1] > flops[b->number - 1]; });
  return trials;
}

class Search {
 public:
  Search(const Plan& plan, const NextOptions& options)
      : options_(options), watch_(options.times), trials_(by_length(plan)) {}

  NextTrial run() {
    while (!options_.stop()) {
      bool undecided = false;
      for (const Trial*& trial : trials_) {
        if (!trial) continue;
        if (options_.skip(*trial) || is_settled(*trial)) {
          trial = nullptr;  // not looked at again
          continue;
        }
        const ClaimView view = watch_.look(*trial);
        if (view.state == ClaimState::free || view.state == ClaimState::dead) {
          if (auto claim = take(*trial, view)) return {trial, std::move(claim)};
          undecided = true;
        }
        undecided |= view.state == ClaimState::unknown || (options_.wait && view.state == ClaimState::held);
      }
      if (!undecided) break;
      std::this_thread::sleep_for(look_again);
    }
    return {};
  }

 private:
  // Nothing when another process was faster, or has settled the trial meanwhile.
  std::unique_ptr<TrialClaim> take(const Trial& trial, const ClaimView& view) const {
    auto claim = TrialClaim::take(trial, view, options_.lost, options_.times);
    if (!claim) return nullptr;
    refresh(trial);
    if (is_settled(trial)) return nullptr;
    if (view.state == ClaimState::dead && !lock_is_free(trial)) return nullptr;
    if (view.state == ClaimState::dead && view.deaths + 1 >= most_deaths) {
      record_crash(trial, concat("its process died ", most_deaths, " times in a row, the last as ", view.owner));
      return nullptr;
    }
    return claim;
  }

  const NextOptions& options_;
  ClaimWatch watch_;
  std::vector<const Trial*> trials_;
};

}  // namespace

NextTrial next_trial(const Plan& plan, const NextOptions& options) { return Search(plan, options).run(); }

std::unique_ptr<TrialClaim> claim_trial(const Trial& trial, const NextOptions& options) {
  ClaimWatch watch(options.times);
  while (true) {
    const ClaimView view = watch.look(trial);
    if (view.state == ClaimState::held)
      throw Error(trial.folder.string(),
                  concat("another process (", view.owner, ") is running this trial. Wait for it to end, or stop it."));
    if (view.state != ClaimState::unknown)
      if (auto claim = TrialClaim::take(trial, view, options.lost, options.times)) {
        if (view.state == ClaimState::dead) lock_is_free(trial);
        return claim;
      }
    if (options.stop()) throw Error(trial.folder.string(), "stopped by a signal.", Exit::stopped);
    std::this_thread::sleep_for(look_again);
  }
}

}  // namespace normlab
