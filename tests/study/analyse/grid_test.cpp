// The grid of a study: places of its variants, styles, and groups.
#include "normlab/study/analyse/grid.h"

#include <gmock/gmock.h>

#include "normlab/study/analyse/groups.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

using testing::ElementsAre;

const std::string crossed =
    "p = [1, 2, 3]\ngain_init = [\"1\", \"matched\"]\n[data]\nfold = [0, 1, 2]\n[study]\n"
    "baseline = \"p = 2, gain_init = 1\"\n";

TEST(Grid, PlacesFollowTheOrderOfTheVariants) {
  const Plan plan = sample_plan(crossed);
  const Grid grid = grid_of(plan);
  ASSERT_EQ(grid.dimensions.size(), 2u);
  EXPECT_EQ(grid.dimensions[0].name, "p");
  EXPECT_TRUE(grid.dimensions[0].numeric);
  EXPECT_FALSE(grid.dimensions[1].numeric);
  for (size_t row = 0; row < 3; ++row)
    for (size_t column = 0; column < 2; ++column)
      EXPECT_EQ(plan.variants[grid.variant_at(row, column)].label,
                grid.dimensions[0].label(row) + ", " + grid.dimensions[1].label(column));
}

TEST(Grid, AxesOfOneValueAreNoDimension) {
  const Grid grid = grid_of(sample_plan("p = [2, 3]\ngain_init = [\"1\"]\n"));
  ASSERT_EQ(grid.dimensions.size(), 1u);
  EXPECT_THAT(grid.places, ElementsAre(ElementsAre(0u), ElementsAre(1u)));
}

TEST(Grid, NamedVariantsAreADimension) {
  const Grid grid = grid_of(make_plan(
      read_study(parse_toml("[[variant]]\nlabel = \"plain\"\nnorm.scheme = \"none\"\n[[variant]]\nlabel = \"two\"\n"
                            "norm.scheme = \"lp\"\n",
                            "x")),
      "study"));
  ASSERT_EQ(grid.dimensions.size(), 1u);
  EXPECT_EQ(grid.dimensions[0].label(1), "two");
}

TEST(Grid, ColoursByTheLongerDimensionAndOneBaseline) {
  const Plan plan = sample_plan(crossed);
  const Grid grid = grid_of(plan);
  const GridStyles styles = styles_of(grid, plan.baseline);
  EXPECT_EQ(styles.series, 0u);
  EXPECT_EQ(styles.variants[0].tone.light, styles.variants[1].tone.light);  // both p = 1
  EXPECT_NE(styles.variants[0].tone.light, styles.variants[4].tone.light);
  EXPECT_NE(styles.variants[0].marker, styles.variants[1].marker);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(styles.variants[i].baseline, i == plan.baseline) << i;
}

// Every p against p = 2 with the same gain.
TEST(Groups, EachHasItsOwnBaseline) {
  const Plan plan = sample_plan(crossed);
  const StudyResults results = sample_results(plan, [](size_t variant, int fold, int64_t) {
    const double of_gain = variant % 2 == 0 ? 0 : -0.2;
    return 2 + of_gain + 0.1 * static_cast<double>(variant / 2) + 0.01 * fold * static_cast<double>(variant / 2);
  });
  const Grid grid = grid_of(plan);
  const auto groups = groups_of(results, grid, styles_of(grid, plan.baseline), analyse(results));
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[1].label, "gain_init = matched");
  EXPECT_EQ(plan.variants[groups[1].analysis.baseline].label, "p = 2, gain_init = matched");
  ASSERT_EQ(groups[1].analysis.comparisons.size(), 2u);
  EXPECT_EQ(plan.variants[groups[1].analysis.comparisons[0].variant].label, "p = 1, gain_init = matched");
  EXPECT_NEAR(*groups[1].analysis.comparisons[0].mean, -0.11, 1e-12);  // the effect of p alone
}

}  // namespace
}  // namespace normlab
