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

TEST(Peak, ReadsAtARateThatAMemoryCanHave) {
  const double rate = measured_read_bandwidth(1, 10000001, 0.05);
  EXPECT_GT(rate, 1e7);
  EXPECT_LT(rate, 1e13);
}

}  // namespace
}  // namespace normlab
