#include "normlab/study/run/claim.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/record/manifest.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

fs::path claim_file(const Trial& trial, int number) { return concat(trial.folder.string(), ".claim-", number); }

std::string content_of(const fs::path& file) {
  std::error_code missing;
  if (!fs::is_regular_file(file, missing)) return "";
  try {
    return read_file(file);
  } catch (const DataError&) {  // moved away, or the file system is out of reach for the moment
    return "";
  }
}

std::string start_of_process(const std::string& pid) {
  const std::string stat = content_of(fs::path("/proc") / pid / "stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return "";
  const std::vector<std::string> words = split(trim(stat.substr(name_end + 1)), ' ');
  constexpr size_t state = 0, start_time = 19;
  return words.size() > start_time && words[state] != "Z" ? words[start_time] : "";
}

// Of processes whose numbers mean the same.
std::string process_space() {
  std::error_code missing;
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", missing);
  return concat(trim(content_of("/proc/sys/kernel/random/boot_id")), " ", space.string());
}

// All claims of a process have the same length, so that a beat overwrites every byte.
std::string claim_text(const char* state, int64_t beat, int deaths) {
  char count[48];
  std::snprintf(count, sizeof count, "beat %012lld\ndeaths %04d\n", static_cast<long long>(beat), deaths);
  const std::string pid = concat(::getpid());
  return concat("normlab claim, ", state, "\n", count, "pid ", pid, "\nstart ", start_of_process(pid), "\nhost ",
                this_machine().host, "\nspace ", process_space(), "\n");
}
constexpr const char *running_state = "running", *given_back = "given back";

std::string entry(const std::string& text, const std::string& name) {
  for (const std::string& line : split(text, '\n'))
    if (line.starts_with(name + " ")) return line.substr(name.size() + 1);
  return "";
}

bool create_new(const fs::path& file, const std::string& content) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0 && errno == EEXIST) return false;
  if (descriptor < 0) throw_errno(file, "claim the trial");
  const ssize_t written = ::write(descriptor, content.data(), content.size());
  const bool closed = ::close(descriptor) == 0;
  if (written != static_cast<ssize_t>(content.size()) || !closed) throw_errno(file, "claim the trial");
  return true;
}

void overwrite(const fs::path& file, const std::string& content) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // another beat follows; without one the claim is taken over
  if (::pwrite(descriptor, content.data(), content.size(), 0) >= 0)
    if (::ftruncate(descriptor, static_cast<off_t>(content.size())) != 0) {
    }
  ::close(descriptor);
}

}  // namespace

ClaimView ClaimWatch::look(const Trial& trial, Clock::time_point now) {
  Seen& seen = seen_[trial.folder];
  std::error_code missing;
  if (!fs::exists(claim_file(trial, seen.number), missing)) seen = {};  // the trial has ended meanwhile
  int number = seen.number;
  while (fs::exists(claim_file(trial, number + 1), missing)) ++number;
  if (number == 0) return {};
  const std::string content = content_of(claim_file(trial, number));
  const bool same_claim = number == seen.number;
  if (!same_claim || content != seen.content)
    seen = {.number = number, .content = content, .since = now, .changed = same_claim};

  ClaimView view{.number = number};
  view.deaths = static_cast<int>(parse_integer(entry(content, "deaths")).value_or(0));
  view.owner = concat("pid ", entry(content, "pid"), " on ", entry(content, "host"));
  if (content.starts_with(concat("normlab claim, ", given_back)))
    view.state = ClaimState::free;
  else if (const std::string start = entry(content, "start");
           !start.empty() && entry(content, "space") == process_space())
    view.state = start_of_process(entry(content, "pid")) == start ? ClaimState::held : ClaimState::dead;
  else if (now - seen.since >= times_.silence)
    view.state = ClaimState::dead;
  else
    view.state = seen.changed ? ClaimState::held : ClaimState::unknown;
  return view;
}

std::unique_ptr<TrialClaim> TrialClaim::take(const Trial& trial, const ClaimView& after, std::function<void()> lost,
                                             ClaimTimes times) {
  fs::create_directories(trial.folder.parent_path());
  const int number = after.number + 1, deaths = after.state == ClaimState::dead ? after.deaths + 1 : 0;
  if (!create_new(claim_file(trial, number), claim_text(running_state, 0, deaths))) return nullptr;
  return std::unique_ptr<TrialClaim>(new TrialClaim(trial, number, deaths, std::move(lost), times));
}

TrialClaim::TrialClaim(const Trial& trial, int number, int deaths, std::function<void()> lost, ClaimTimes times)
    : trial_(trial), number_(number), deaths_(deaths), times_(times), beating_([this, lost = std::move(lost)] {
        beat_until_end(lost);
      }) {}

TrialClaim::~TrialClaim() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_wanted_.notify_all();
  beating_.join();
  overwrite(claim_file(trial_, number_), claim_text(given_back, 0, 0));
  if (!read_trial(trial_).ended()) return;
  // Whoever claims it from here on sees that it has ended.
  std::error_code ignored;
  for (int number = number_; number > 0; --number) fs::remove(claim_file(trial_, number), ignored);
}

void TrialClaim::beat_until_end(const std::function<void()>& lost) {
  std::unique_lock lock(mutex_);
  for (int64_t beat = 1; !end_wanted_.wait_for(lock, times_.beat, [this] { return ended_; }); ++beat) {
    std::error_code missing;
    if (fs::exists(claim_file(trial_, number_ + 1), missing)) return lost();
    overwrite(claim_file(trial_, number_), claim_text(running_state, beat, deaths_));
  }
}

}  // namespace normlab
