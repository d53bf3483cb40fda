// Other programs: their end, their last words, and a stop.
#include "normlab/base/run_program.h"

#include <gmock/gmock.h>

#include <chrono>

#include "normlab/base/error.h"
#include "normlab/base/file.h"

namespace normlab {
namespace {

std::string failure_of(const std::vector<std::string>& arguments, const ProgramOptions& options) {
  try {
    run_program("task", arguments, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RunProgram, SaysHowAProgramFailed) {
  const ScratchFolder folder;
  const ProgramOptions options{.log = folder.path() / "log"};
  EXPECT_EQ(failure_of({"sh", "-c", "echo fine"}, options), "");
  EXPECT_EQ(read_file(options.log), "fine\n");
  EXPECT_EQ(failure_of({"sh", "-c", "echo the reason >&2; exit 3"}, options),
            "[task] failed with status 3: the reason.");
  EXPECT_EQ(failure_of({"sh", "-c", "kill -9 $$"}, options), "[task] was ended by signal 9.");
  EXPECT_THAT(failure_of({"/no/such/program"}, options), testing::HasSubstr("cannot start /no/such/program"));
}

TEST(RunProgram, AStopKillsIt) {
  const ScratchFolder folder;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of({"sleep", "60"}, {.log = folder.path() / "log", .stop = [] { return true; }}),
            "[task] stopped.");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(RunProgram, GivesWay) {
  const ScratchFolder folder;
  const ProgramOptions options{.log = folder.path() / "log", .nice = 19};
  run_program("task", {"sh", "-c", "sleep 0.2; nice"}, options);
  EXPECT_EQ(read_file(options.log), "19\n");
}

TEST(RunProgram, TheFolderIsRemoved) {
  std::filesystem::path path;
  {
    const ScratchFolder folder;
    path = folder.path();
    write_file_atomically(path / "file", "x");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace normlab
