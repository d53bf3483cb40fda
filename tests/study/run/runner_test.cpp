#include "normlab/study/run/runner.h"

#include <gmock/gmock.h>

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

Plan plan_in(const fs::path& folder) {
  return make_plan(read_study({parse_setting("norm.scheme=lp"), parse_setting("norm.p=[2,3]")}), folder / "study");
}

fs::path write_program(const fs::path& path, const std::string& content) {
  write_file_atomically(path, content);
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

// A program that runs until it is asked to stop stands in for a trial. It is slow to load: what comes before it is
// ready waits until then.
TEST(Runner, PassesARequestToStopOnToItsTrials) {
  const TemporaryFolder folder;
  const Plan plan = plan_in(folder.path());
  const fs::path program = write_program(folder / "program",
                                         "#!/usr/bin/env python3\n"
                                         "import os, signal, sys, time\n"
                                         "print('loading', flush=True)\n"
                                         "time.sleep(0.3)\n"
                                         "signal.signal(signal.SIGTERM, lambda *_: os._exit(75))\n"
                                         "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])\n"
                                         "time.sleep(60)\n");
  const Trial &first = plan.trials[0], &second = plan.trials[1];
  const fs::path log = first.folder.string() + ".log";

  bool stop = false;
  std::vector<std::pair<const Trial*, TrialEnd>> ends;
  RunnerEvents events;
  events.ended = [&](const Trial& trial, TrialEnd end) { ends.emplace_back(&trial, end); };
  events.tick = [&](const std::vector<const Trial*>& running) {
    EXPECT_EQ(running.size(), 1U);  // jobs
    stop = stop || (fs::exists(log) && fs::file_size(log) > 0);
  };
  run_trials(plan, {&first, &second}, {.program = program, .jobs = 1, .stop = [&] { return stop; }}, events);
  EXPECT_THAT(ends, testing::ElementsAre(testing::Pair(&first, TrialEnd::stopped)));  // the second was not started
  EXPECT_EQ(read_trial(first).status, TrialStatus::missing);
}

TEST(Runner, TriesAKilledTrialOnceMore) {
  for (const char* end : {"kill -KILL $$", "exit 75"}) {
    const TemporaryFolder folder;
    const Plan plan = plan_in(folder.path());
    const fs::path program = write_program(
        folder / "program", concat("#!/bin/sh\necho $3 >> ", (folder / "calls").string(), "\n", end, "\n"));
    const Trial &first = plan.trials[0], &second = plan.trials[1];
    std::vector<const Trial*> retried, ended;
    std::string how;
    const RunnerEvents events{.ended = [&](const Trial& trial, TrialEnd) { ended.push_back(&trial); },
                              .retried =
                                  [&](const Trial& trial, const std::string& why) {
                                    retried.push_back(&trial);
                                    how = why;
                                  },
                              .tick = [](const std::vector<const Trial*>&) {}};
    run_trials(plan, {&first, &second}, {.program = program, .jobs = 1}, events);
    EXPECT_EQ(read_file(folder / "calls"), "1\n1\n2\n2\n");
    EXPECT_THAT(retried, testing::ElementsAre(&first, &second));
    EXPECT_THAT(ended, testing::ElementsAre(&first, &second));
    if (std::string(end) == "exit 75") {
      EXPECT_EQ(how, "stopped by a signal");
    } else {
      EXPECT_EQ(how, "killed by signal 9 (Killed)");
      EXPECT_EQ(read_trial(first).status, TrialStatus::crashed);
    }
  }
}

TEST(Runner, ATrialThatFailsOfItselfIsNotTriedAgain) {
  const TemporaryFolder folder;
  const Plan plan = plan_in(folder.path());
  const fs::path program = write_program(folder / "program", "#!/bin/sh\necho why\nexit 1\n");
  int ended = 0;
  const RunnerEvents events{.ended = [&](const Trial&, TrialEnd) { ++ended; },
                            .retried = [](const Trial&, const std::string&) { FAIL(); },
                            .tick = [](const std::vector<const Trial*>&) {}};
  run_trials(plan, {&plan.trials[0]}, {.program = program, .jobs = 1}, events);
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(read_trial(plan.trials[0]).message, "exit code 1: why");
}

}  // namespace
}  // namespace normlab
