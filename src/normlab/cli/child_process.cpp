#include "normlab/cli/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"

namespace normlab {
namespace {

// Starts a program with the pipe ends as its standard input and output; the error number, or 0.
int spawn(pid_t& child, const std::vector<std::string>& command, int input, int output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int failure = posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command) : name_(command.front()) {
  int input[2], output[2];
  if (::pipe2(input, O_CLOEXEC) != 0) throw_errno(name_, "make a pipe");
  if (::pipe2(output, O_CLOEXEC) != 0) throw_errno(name_, "make a pipe");
  const int failure = spawn(id_, command, input[0], output[1]);
  ::close(input[0]);
  ::close(output[1]);
  to_child_ = input[1];
  from_child_ = output[0];
  if (failure == 0) return;
  ::close(to_child_);
  ::close(from_child_);
  throw UsageError(name_, concat("cannot be started: ", std::generic_category().message(failure), "."));
}

ChildProcess::~ChildProcess() {
  ::close(to_child_);
  ::close(from_child_);
  ::kill(-id_, SIGKILL);
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::write_line(const std::string& line) {
  std::string text = line + "\n";
  while (!text.empty()) {
    const ssize_t count = ::write(to_child_, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;  // it has ended; read_line() says so
    if (count > 0) text.erase(0, static_cast<size_t>(count));
  }
}

std::optional<std::string> ChildProcess::read_line() {
  constexpr int patience_ms = 100;  // between looks at the request to stop
  while (true) {
    const size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (stop_requested()) return std::nullopt;
    pollfd waiting{.fd = from_child_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, patience_ms) <= 0) continue;
    char buffer[4096];
    const ssize_t count = ::read(from_child_, buffer, sizeof buffer);
    if (count > 0) unread_.append(buffer, static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) throw Error(name_, "ended without an answer.");
  }
}

}  // namespace normlab
