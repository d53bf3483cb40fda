// The measured peak.
#include "normlab/kernels/peak.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

TEST(Peak, IsARateThatAProcessorCanHave) {
  const double peak = measured_peak(1, 0.05);
  EXPECT_GT(peak, 1e8);
  EXPECT_LT(peak, 1e12);
  EXPECT_GT(measured_peak(2, 0.05), 0.2 * peak);
}

}  // namespace
}  // namespace normlab
