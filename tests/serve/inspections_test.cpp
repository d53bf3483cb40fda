// Inspections on request: one at a time, none twice, the last few kept.
#include "normlab/serve/inspections.h"

#include <gmock/gmock.h>

#include <semaphore>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/serve/inspect_page.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Computes a page when it is allowed to.
struct Computer {
  std::counting_semaphore<> allowed{0};
  std::atomic<int> started = 0;

  Inspections::Compute compute() {
    return [this](const fs::path& run, const StopToken& stop) {
      ++started;
      while (!allowed.try_acquire_for(std::chrono::milliseconds(1)))
        if (stop()) throw Error("inspect", "stopped.", Exit::stopped);
      if (run.filename() == "bad") throw DataError("bad", "has no checkpoint.");
      return concat("page of ", run.filename().string());
    };
  }
};

void wait_until_done(const Inspections& inspections) {
  while (inspections.busy()) std::this_thread::yield();
}

TEST(Inspections, OneAtATimeAndNoneTwice) {
  Computer computer;
  Inspections inspections(computer.compute());
  EXPECT_EQ(inspections.of("a").state, InspectionState::none);
  inspections.start("a");
  EXPECT_EQ(inspections.of("a").state, InspectionState::computing);
  inspections.start("b");
  inspections.start("a");
  EXPECT_EQ(inspections.of("b").state, InspectionState::none);
  computer.allowed.release();
  wait_until_done(inspections);
  ASSERT_EQ(inspections.of("a").state, InspectionState::done);
  EXPECT_EQ(*inspections.of("a").page, "page of a");
  inspections.start("a");
  EXPECT_FALSE(inspections.busy());
  EXPECT_EQ(computer.started, 1);
}

TEST(Inspections, AFailureIsKeptAndCanBeTriedAgain) {
  Computer computer;
  Inspections inspections(computer.compute());
  computer.allowed.release(2);
  inspections.start("bad");
  wait_until_done(inspections);
  EXPECT_EQ(inspections.of("bad").state, InspectionState::failed);
  EXPECT_THAT(inspections.of("bad").problem, HasSubstr("has no checkpoint"));
  inspections.start("bad");
  wait_until_done(inspections);
  EXPECT_EQ(computer.started, 2);
}

TEST(Inspections, ANewCheckpointIsInspectedAgain) {
  const TemporaryFolder run;
  fs::create_directory(run / "checkpoints");
  fs::create_symlink("step-1", run / "checkpoints/latest");
  Computer computer;
  Inspections inspections(computer.compute());
  computer.allowed.release(2);
  const fs::path folder = run / ".";
  inspections.start(folder);
  wait_until_done(inspections);
  fs::remove(run / "checkpoints/latest");
  fs::create_symlink("step-2", run / "checkpoints/latest");
  EXPECT_EQ(inspections.of(folder).state, InspectionState::done);  // until it is asked for again
  inspections.start(folder);
  wait_until_done(inspections);
  EXPECT_EQ(computer.started, 2);
}

TEST(Inspections, FewAreKept) {
  Computer computer;
  Inspections inspections(computer.compute());
  computer.allowed.release(6);
  for (const char* run : {"1", "2", "3", "4", "5", "6"}) {
    inspections.start(run);
    wait_until_done(inspections);
  }
  EXPECT_EQ(inspections.of("2").state, InspectionState::none);
  EXPECT_EQ(inspections.of("3").state, InspectionState::done);
}

TEST(Inspections, TheEndDoesNotWaitForThem) {
  Computer computer;
  {
    Inspections inspections(computer.compute());
    inspections.start("a");
  }
  EXPECT_LE(computer.started, 1);
}

TEST(Inspections, CheckpointsOutsideAreNotInspected) {
  const TemporaryFolder outer;
  fs::create_directories(outer / "served/run/checkpoints/step-1");
  fs::create_directories(outer / "other/step-1");
  const ServedFolder folder(outer / "served");
  const fs::path run = folder.root() / "run";
  Computer computer;
  const Inspections inspections(computer.compute()), none(nullptr);
  EXPECT_TRUE(may_inspect(folder, run, inspections));
  EXPECT_FALSE(may_inspect(folder, run, none));
  fs::create_directory_symlink(outer / "other/step-1", run / "checkpoints/latest");
  EXPECT_FALSE(may_inspect(folder, run, inspections));
  fs::remove_all(run / "checkpoints");
  EXPECT_FALSE(may_inspect(folder, run, inspections));
  fs::create_directory_symlink(outer / "other", run / "checkpoints");
  EXPECT_FALSE(may_inspect(folder, run, inspections));
}

}  // namespace
}  // namespace normlab
