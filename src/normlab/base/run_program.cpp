#include "normlab/base/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr auto end_poll = std::chrono::milliseconds(20);

// pip ends with the reason, sometimes followed by notices about itself.
std::string reason_in(const std::string& log) {
  std::string last;
  for (const std::string& line : split(log, '\n')) {
    const std::string text = trim(line);
    if (!text.empty() && !text.starts_with("[notice]") && !text.starts_with("WARNING:")) last = text;
  }
  return last.empty() ? "no reason given" : last;
}

// The error number, or 0.
int spawn(pid_t& child, const std::vector<std::string>& arguments, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

// Its status once it has ended; a stop kills it first.
int wait_for(pid_t child, const std::string& name, const StopToken& stop) {
  int status = 0;
  bool killed = false;
  while (true) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) throw_errno(name, "wait for its end");
    if (!killed && stop()) killed = true, ::kill(child, SIGKILL);
    std::this_thread::sleep_for(end_poll);
  }
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "normlab-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw_errno(name, "make a temporary folder");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void run_program(const std::string& task, const std::vector<std::string>& arguments, const ProgramOptions& options) {
  pid_t child = 0;
  if (const int failure = spawn(child, arguments, options.log); failure != 0)
    throw Error(task, concat("cannot start ", arguments[0], ": ", std::generic_category().message(failure), "."));
  if (options.nice > 0) ::setpriority(PRIO_PROCESS, static_cast<id_t>(child), options.nice);
  const int status = wait_for(child, arguments[0], options.stop);
  if (options.stop()) throw Error(task, "stopped.", Exit::stopped);
  if (WIFSIGNALED(status)) throw Error(task, concat("was ended by signal ", WTERMSIG(status), "."));
  if (WEXITSTATUS(status) != 0)
    throw Error(task, concat("failed with status ", WEXITSTATUS(status), ": ", reason_in(read_file(options.log)), "."));
}

}  // namespace normlab
