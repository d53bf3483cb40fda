// Tests of colours as the eye sees them.
#include "normlab/report/colour.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

TEST(Contrast, KnownValues) {
  EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 1e-9);
  EXPECT_NEAR(contrast("#777777", "#ffffff"), 4.48, 0.005);  // the well-known grey just below 4.5
  EXPECT_DOUBLE_EQ(contrast("#123456", "#123456"), 1);
}

TEST(ColourDistance, BlackToWhiteIsOne) {
  EXPECT_NEAR(colour_distance("#000000", "#ffffff"), 1, 1e-3);
  EXPECT_NEAR(colour_distance("#ff0000", "#00ff00"), 0.5201, 0.002);  // OKLab of the primaries
}

TEST(EvenColours, NeighboursAreEquallyFar) {
  const Ramp ramp{{0.4, 0.1, 250}, {0.5, 0.15, 330}, {0.7, 0.1, 60}};
  for (const std::size_t count : {2u, 3u, 7u, 12u}) {
    const auto colours = even_colours(ramp, count);
    ASSERT_EQ(colours.size(), count);
    double least = 1, most = 0;
    for (std::size_t i = 1; i < count; ++i) {
      const double distance = colour_distance(colours[i - 1], colours[i]);
      least = std::min(least, distance), most = std::max(most, distance);
    }
    EXPECT_LT(most, 1.25 * least) << count;
  }
  EXPECT_EQ(even_colours(ramp, 0).size(), 0u);
  EXPECT_EQ(even_colours(ramp, 1).size(), 1u);
}

}  // namespace
}  // namespace normlab
