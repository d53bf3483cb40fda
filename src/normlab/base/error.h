// Errors: what happened, what was got and expected, and what to do; one catch in main turns them into exit codes.
#pragma once

#include <stdexcept>
#include <string>

namespace normlab {

// Exit codes of the program (docs/command-line.md).
enum class Exit : int { done = 0, failed = 1, usage = 2, data = 3, diverged = 4, stopped = 75 };

class Error : public std::runtime_error {
 public:
  // `where` names the place a user knows (a file, a key, an op), `what` says what happened, what was got and
  // expected, and ends with what to do.
  Error(const std::string& where, const std::string& what, Exit code = Exit::failed)
      : std::runtime_error("[" + where + "] " + what), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// The user's command or configuration is wrong (exit 2).
class UsageError : public Error {
 public:
  UsageError(const std::string& where, const std::string& what) : Error(where, what, Exit::usage) {}
};

// The user's data is wrong, or a check failed (exit 3).
class DataError : public Error {
 public:
  DataError(const std::string& where, const std::string& what) : Error(where, what, Exit::data) {}
};

}  // namespace normlab
