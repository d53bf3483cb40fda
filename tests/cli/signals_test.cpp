// Signals, each in a child process of its own.
#include "normlab/cli/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "sandbox.h"

namespace normlab {
namespace {

TEST(Signals, NothingIsRequestedBeforeASignal) {
  EXPECT_TRUE(exited_with(run_in_child([] {
                            install_signal_handlers();
                            return stop_requested() || take_save_request();
                          }),
                          0));
}

TEST(Signals, StopSignalsAreRequests) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    const int status = run_in_child([signal] {
      install_signal_handlers();
      ::raise(signal);
      return stop_requested() && !take_save_request() ? 0 : 1;
    });
    EXPECT_TRUE(exited_with(status, 0)) << signal;
  }
}

TEST(Signals, SecondInterruptEndsAtOnce) {
  const int status = run_in_child([] {
    install_signal_handlers();
    ::raise(SIGINT);
    ::raise(SIGINT);
    return 0;
  });
  EXPECT_TRUE(exited_with(status, 130));
}

TEST(Signals, SecondTerminateStillWaitsForTheCheckpoint) {
  const int status = run_in_child([] {
    install_signal_handlers();
    ::raise(SIGTERM);
    ::raise(SIGTERM);
    ::raise(SIGINT);
    return stop_requested() ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0));
}

TEST(Signals, AHangupThatIsIgnoredStaysSo) {  // as nohup asks
  const int status = run_in_child([] {
    ::signal(SIGHUP, SIG_IGN);
    install_signal_handlers();
    ::raise(SIGHUP);
    return stop_requested() ? 1 : 0;
  });
  EXPECT_TRUE(exited_with(status, 0));
}

TEST(Signals, HeldOnesComeLater) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    const int status = run_in_child([signal] {
      hold_signals();
      ::raise(signal);  // without a handler it would end the process
      install_signal_handlers();
      if (stop_requested() || take_save_request()) return 1;
      admit_signals();
      return (signal == SIGUSR2 ? take_save_request() : stop_requested()) ? 0 : 2;
    });
    EXPECT_TRUE(exited_with(status, 0)) << signal;
  }
}

TEST(Signals, SaveRequestIsTakenOnce) {
  const int status = run_in_child([] {
    install_signal_handlers();
    ::raise(SIGUSR2);
    const bool first = take_save_request(), second = take_save_request();
    return first && !second && !stop_requested() ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0));
}

TEST(Signals, ClosedPipeIsAnErrorNotADeath) {
  const int status = run_in_child([] {
    install_signal_handlers();
    int ends[2];
    if (::pipe(ends) != 0) return 2;
    ::close(ends[0]);
    return ::write(ends[1], "x", 1) == -1 ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0));
}

TEST(Signals, AFileSizeLimitIsAnErrorNotADeath) {
  TemporaryFolder folder;
  const int status = run_in_child([&] {
    install_signal_handlers();
    const rlimit limit{.rlim_cur = 10, .rlim_max = 10};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    const int file = ::open((folder / "file").c_str(), O_WRONLY | O_CREAT, 0600);
    return ::write(file, "0123456789ab", 12) == 10 && ::write(file, "x", 1) == -1 && errno == EFBIG ? 0 : 1;
  });
  EXPECT_TRUE(exited_with(status, 0)) << status;
}

}  // namespace
}  // namespace normlab
