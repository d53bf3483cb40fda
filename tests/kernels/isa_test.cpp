// The instruction set and its setting in the environment.
#include "normlab/kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "kernels/every_target.h"
#include "normlab/base/error.h"

namespace normlab::testing {
namespace {

TEST(Isa, NamesTheSetInUse) {
  std::set<std::string> names;
  on_every_target([&] { names.insert(std::string(isa_name())); });
  EXPECT_FALSE(names.empty());
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("unknown")));
}

TEST(Isa, RefusesAnUnknownSetting) {
  const char* before = std::getenv("NORMLAB_ISA");
  const std::string kept = before ? before : "";
  setenv("NORMLAB_ISA", "avx9000", 1);
  EXPECT_THROW(check_isa_setting(), UsageError);
  setenv("NORMLAB_ISA", "scalar", 1);
  EXPECT_NO_THROW(check_isa_setting());
  unsetenv("NORMLAB_ISA");
  EXPECT_NO_THROW(check_isa_setting());
  if (before) setenv("NORMLAB_ISA", kept.c_str(), 1);
}

// The setting is read once, so a new process is needed to see it obeyed.
TEST(IsaDeathTest, ScalarSettingForcesTheTwins) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("NORMLAB_ISA", "scalar", 1);
        std::exit(scalar_kernels() && isa_name() == "scalar" ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace normlab::testing
