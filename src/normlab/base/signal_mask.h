// Signals that are requests to a program: to stop, or to save. They are held back while a program loads, which takes
// libtorch half a second, because one that has no handler yet would end it. A program inherits what is held.
#pragma once

#include <csignal>

namespace normlab {

inline sigset_t request_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::sigaddset(&set, signal);
  return set;
}

// Holds them for a scope.
class HeldSignals {
 public:
  HeldSignals() {
    const sigset_t set = request_signals();
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace normlab
