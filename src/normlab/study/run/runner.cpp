#include "normlab/study/run/runner.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <set>
#include <thread>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/folder_lock.h"
#include "normlab/base/signal_mask.h"
#include "normlab/base/text.h"
#include "normlab/study/run/claim.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr auto look_interval = std::chrono::milliseconds(20);
// A killed study's children may still be saving when the next one starts.
constexpr auto patience_with_others = std::chrono::seconds(30);

fs::path log_file(const Trial& trial) { return trial.folder.string() + ".log"; }

// By a process of this machine.
bool in_use(const Trial& trial) {
  if (!fs::is_directory(trial.folder)) return false;
  try {
    const FolderLock lock(trial.folder);
    return false;
  } catch (const Error&) {
    return true;
  }
}

struct Child {
  const Trial* trial;
  pid_t id;
};

// Starts `PROGRAM trial WORDS... --quiet`, which prints to `log`, or where this process does. Between fork and exec
// only what is safe there; all memory is made before.
pid_t start_process(std::vector<std::string> words, const RunnerOptions& options, const File* log) {
  const int null_device = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const std::string program = options.program.string();
  words.insert(words.begin(), {"normlab", "trial"});
  words.emplace_back("--quiet");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const HeldSignals held;  // by the child until it is ready for them
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) throw_errno(words[2], "start a process for its trials");
  if (child == 0) {
    ::setpgid(0, 0);  // Ctrl-C reaches the parent alone, which passes it on
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(static_cast<int>(Exit::stopped));
    if (options.nice > 0) ::setpriority(PRIO_PROCESS, 0, options.nice);
    ::dup2(null_device, STDIN_FILENO);
    if (log) {
      ::dup2(log->descriptor(), STDOUT_FILENO);
      ::dup2(log->descriptor(), STDERR_FILENO);
    }
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(null_device);
  return child;
}

Child start(const Plan& plan, const Trial& trial, const RunnerOptions& options) {
  fs::create_directories(trial.folder.parent_path());
  fs::remove(log_file(trial));
  const File log = File::create(log_file(trial), log_file(trial));
  return {&trial, start_process({plan.folder.string(), concat(trial.number)}, options, &log)};
}

std::string last_line(const fs::path& file) {
  std::error_code missing;
  if (!fs::exists(file, missing)) return "";
  std::string last;
  for (const std::string& line : split(read_file(file), '\n'))
    if (!trim(line).empty()) last = trim(line);
  return last;
}

bool was_stopped(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(Exit::stopped); }

std::string how_ended(int status) {
  if (was_stopped(status)) return "stopped by a signal";
  if (WIFSIGNALED(status))
    return concat("killed by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return concat("exit code ", WEXITSTATUS(status));
}

// A child that could not say itself what went wrong is spoken for.
TrialEnd conclude(const Trial& trial, int status) {
  if (was_stopped(status)) return TrialEnd::stopped;
  const TrialRecord record = read_trial(trial);
  if (record.status != TrialStatus::missing && record.status != TrialStatus::started) return TrialEnd::recorded;
  const ClaimState claim = ClaimWatch().look(trial).state;
  if (in_use(trial) || claim == ClaimState::held || claim == ClaimState::unknown) return TrialEnd::in_use;
  const std::string how = how_ended(status), line = last_line(log_file(trial));
  record_crash(trial, line.empty() ? how : concat(how, ": ", line));
  return TrialEnd::recorded;
}

class Runner {
 public:
  Runner(const Plan& plan, const std::vector<const Trial*>& queue, const RunnerOptions& options,
         const RunnerEvents& events)
      : plan_(plan), queue_(queue.begin(), queue.end()), options_(options), events_(events) {}
  ~Runner() {
    signal_all(SIGTERM);  // only when an exception ends the study
    for (const Child& child : running_)
      while (::waitpid(child.id, nullptr, 0) < 0 && errno == EINTR) {
      }
  }

  void run() {
    while (true) {
      reap();
      if (options_.stop() && !stopping_) {
        stopping_ = true;
        signal_all(SIGTERM);
      }
      if (!stopping_) fill();
      if (running_.empty() && (stopping_ || queue_.empty())) return;
      if (running_.empty() && SteadyClock::now() - last_progress_ > patience_with_others) return give_up();
      tick();
      std::this_thread::sleep_for(look_interval);
    }
  }

 private:
  void signal_all(int signal) {
    for (const Child& child : running_) ::kill(child.id, signal);
  }

  // From outside, such as by the system when memory is short: nothing that the trial did.
  bool was_killed(const Trial& trial, int status) const {
    return !stopping_ && !options_.stop() && (WIFSIGNALED(status) || was_stopped(status)) && !read_trial(trial).ended();
  }

  void reap() {
    for (size_t i = 0; i < running_.size();) {
      int status = 0;
      if (::waitpid(running_[i].id, &status, WNOHANG) != running_[i].id) {
        ++i;
        continue;
      }
      const Trial& trial = *running_[i].trial;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      if (was_killed(trial, status) && retried_.insert(&trial).second) {
        queue_.push_front(&trial);
        events_.retried(trial, how_ended(status));
        continue;
      }
      const TrialEnd end = conclude(trial, status);
      if (end == TrialEnd::in_use)
        queue_.push_back(&trial);
      else
        last_progress_ = SteadyClock::now(), events_.ended(trial, end);
    }
  }

  // Starts as many as there is room for; one that another process is running waits for the next look.
  void fill() {
    for (size_t tried = 0, n = queue_.size(); tried < n && running_.size() < static_cast<size_t>(options_.jobs);
         ++tried) {
      const Trial& trial = *queue_.front();
      queue_.pop_front();
      if (in_use(trial)) {
        queue_.push_back(&trial);
      } else if (read_trial(trial).ended()) {
        events_.ended(trial, TrialEnd::recorded);  // by another process, meanwhile
      } else {
        running_.push_back(start(plan_, trial, options_));
        last_progress_ = SteadyClock::now();
      }
    }
  }

  void give_up() {
    for (const Trial* trial : queue_) events_.ended(*trial, TrialEnd::in_use);
  }

  void tick() {
    std::vector<const Trial*> running;
    for (const Child& child : running_) running.push_back(child.trial);
    events_.tick(running);
  }

  const Plan& plan_;
  std::deque<const Trial*> queue_;
  RunnerOptions options_;
  const RunnerEvents& events_;
  std::vector<Child> running_;
  std::set<const Trial*> retried_;
  bool stopping_ = false;
  SteadyClock::time_point last_progress_ = SteadyClock::now();
};

}  // namespace

void run_trials(const Plan& plan, const std::vector<const Trial*>& queue, const RunnerOptions& options,
                const RunnerEvents& events) {
  Runner(plan, queue, options, events).run();
}

void run_free_trials(const fs::path& folder, const RunnerOptions& options) {
  const pid_t child = start_process({folder.string(), "--all"}, options, nullptr);
  bool stopping = false;
  while (true) {
    const pid_t ended = ::waitpid(child, nullptr, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return;
    if (options.stop() && !stopping) {
      stopping = true;
      ::kill(child, SIGTERM);
    }
    std::this_thread::sleep_for(look_interval);
  }
}

}  // namespace normlab
