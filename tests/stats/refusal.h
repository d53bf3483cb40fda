// Checks that a call is refused with an Error of the given kind whose message contains a text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "normlab/base/error.h"

namespace normlab {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double inf = std::numeric_limits<double>::infinity();

template <class Call>
void expect_refused(const Call& call, Exit code, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "not refused; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(text));
  }
}

}  // namespace normlab
