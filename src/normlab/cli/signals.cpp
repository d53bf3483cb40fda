// Signals: the handlers touch lock-free atomics only.
#include "normlab/cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "normlab/base/signal_mask.h"

namespace normlab {
namespace {

std::atomic<bool> stop_wanted = false;
std::atomic<bool> interrupted = false;
std::atomic<bool> save = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  if (interrupted.exchange(true)) ::_exit(130);
  stop_wanted = true;
}
void on_stop(int) { stop_wanted = true; }
void on_save(int) { save = true; }

void change_mask(int how) {
  const sigset_t set = request_signals();
  ::pthread_sigmask(how, &set, nullptr);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  handle(SIGINT, on_interrupt);
  handle(SIGTERM, on_stop);
  handle(SIGUSR1, on_stop);
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN)  // nohup ignores it
    handle(SIGHUP, on_stop);
  handle(SIGUSR2, on_save);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

void hold_signals() { change_mask(SIG_BLOCK); }

void admit_signals() { change_mask(SIG_UNBLOCK); }

bool stop_requested() { return stop_wanted; }

bool take_save_request() { return save.exchange(false); }

}  // namespace normlab
