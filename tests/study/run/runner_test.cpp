#include "normlab/study/run/runner.h"

#include <gmock/gmock.h>

#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// A program that runs until it is asked to stop stands in for a trial.
TEST(Runner, PassesARequestToStopOnToItsTrials) {
  const TemporaryFolder folder;
  const Plan plan =
      make_plan(read_study({parse_setting("norm.scheme=lp"), parse_setting("norm.p=[2,3]")}), folder.path() / "study");
  const fs::path program = folder / "program";
  write_file_atomically(program, "#!/bin/sh\ntrap 'exit 75' TERM\necho ready\nwhile true; do sleep 0.02; done\n");
  fs::permissions(program, fs::perms::owner_all);
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

}  // namespace
}  // namespace normlab
