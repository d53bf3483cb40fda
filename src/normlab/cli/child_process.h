// A child process that answers lines with lines.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace normlab {

// Standard error is shared with it. It has a process group of its own, so that Ctrl-C reaches only its parent, and is
// killed at the end of its scope.
class ChildProcess {
 public:
  explicit ChildProcess(const std::vector<std::string>& command);  // UsageError when it cannot be started
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  void write_line(const std::string& line);
  // The next line without its end; nothing when a signal asks us to stop. Error when the child ends before it.
  std::optional<std::string> read_line();

 private:
  std::string name_;
  pid_t id_ = -1;
  int to_child_ = -1, from_child_ = -1;
  std::string unread_;
};

}  // namespace normlab
