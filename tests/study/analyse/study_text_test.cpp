#include "normlab/study/analyse/study_text.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

TEST(StudyText, APValueIsNotRoundedAcrossTheLevel) {
  EXPECT_EQ(p_text(0.0504), "0.0504");
  EXPECT_EQ(p_text(0.05004), "0.05004");
  EXPECT_EQ(p_text(0.05), "0.050");
  EXPECT_EQ(p_text(0.0496), "0.050");
  EXPECT_EQ(p_text(0.98), "0.98");
  EXPECT_EQ(p_text(0.0004), "below 0.001");
}

}  // namespace
}  // namespace normlab
