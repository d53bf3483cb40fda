#include "normlab/kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/every_target.h"

namespace normlab::testing {
namespace {

TEST(Isa, NamesTheSetInUse) {
  std::set<std::string> names;
  on_every_target([&] { names.insert(std::string(isa_name())); });
  EXPECT_EQ(names.size(), hwy::SupportedAndGeneratedTargets().size());
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("unknown")));
}

}  // namespace
}  // namespace normlab::testing
