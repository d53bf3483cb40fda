// The Friedman test and Nemenyi's critical difference against SciPy and Demsar's published example.
#include "normlab/stats/friedman.h"

#include <gmock/gmock.h>

#include "refusal.h"

namespace normlab {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

using Table = std::vector<std::vector<double>>;

// Errors (1 - AUC) of C4.5 with four settings on 14 data sets: Demsar, JMLR 7 (2006), table 6. The paper ranks the
// last two of "voting", equal as printed, as different.
const Table demsar{{.237, .232, .229, .202},  {.401, .409, .410, .431},
                   {.046, .029, .032, .033},  {.372, .339, .346, .343},
                   {.118, .112, .114, .102},  {.064, .069, .084, .069},
                   {.339, .332, .391, .315},  {.417, .417, .437, .375},
                   {.225, .162, .134, .125},  {0, 0, 0, 0},
                   {.060, .038, .035, .038},  {.381, .334, .386, .331},
                   {.028, .019, .0249, .025}, {.043, .022, .054, .030}};

const Table untied{
    {1.1, 1.3, 1.2, 1.0}, {2.1, 2.4, 2.0, 2.3}, {0.9, 1.5, 1.1, 1.2}, {1.7, 1.9, 1.6, 1.8}, {3.0, 3.3, 3.1, 2.9}};

TEST(Friedman, AsScipy) {
  // scipy.stats.friedmanchisquare(*untied.T); F = (n-1) chi2 / (n (k-1) - chi2), scipy.stats.f.sf(F, 3, 12)
  const FriedmanTest test = friedman(untied);
  EXPECT_NEAR(test.chi_square, 9.239999999999995, 1e-12);
  EXPECT_EQ(test.df, 3);
  EXPECT_NEAR(test.p_value, 0.02626441798709072, 1e-14);
  EXPECT_NEAR(test.f, 6.416666666666657, 1e-11);
  EXPECT_EQ(test.f_df1, 3);
  EXPECT_EQ(test.f_df2, 12);
  EXPECT_NEAR(test.f_p_value, 0.007696549309414834, 1e-14);
  const auto near = [](double value) { return DoubleNear(value, 1e-14); };
  EXPECT_THAT(test.average_ranks, ElementsAre(near(1.8), near(4), near(2), near(2.2)));
}

TEST(Friedman, DemsarsExample) {
  const FriedmanTest test = friedman(demsar);
  const auto printed = [](double value) { return DoubleNear(value, 0.0005); };
  EXPECT_THAT(test.average_ranks, ElementsAre(printed(3.143), printed(2.000), printed(2.893), printed(1.964)));
  // The paper's 9.28 is not corrected for ties; SciPy's is: scipy.stats.friedmanchisquare(*demsar.T)
  EXPECT_NEAR(test.chi_square, 10.228346456692925, 1e-12);
  EXPECT_NEAR(test.p_value, 0.016721580328441323, 1e-14);
}

TEST(Friedman, FoldsThatAllRankAlike) {
  const FriedmanTest test = friedman(Table{{1, 2, 3}, {4, 5, 9}, {2, 3, 7}});
  EXPECT_DOUBLE_EQ(test.chi_square, 6);  // its largest value, n (k - 1)
  EXPECT_EQ(test.f, inf);
  EXPECT_DOUBLE_EQ(test.f_p_value, 1.0 / 36);  // two folds repeat one of 3! orders
  const FriedmanTest tied = friedman(Table{{1, 1, 3}, {4, 4, 9}});
  EXPECT_DOUBLE_EQ(tied.chi_square, 4);
  EXPECT_DOUBLE_EQ(tied.f_p_value, 1.0 / 3);
}

TEST(Friedman, NothingToRank) {
  const FriedmanTest test = friedman(Table{{1, 1, 1}, {2, 2, 2}});
  EXPECT_EQ(test.chi_square, 0);
  EXPECT_EQ(test.p_value, 1);
  EXPECT_EQ(test.f, 0);
  EXPECT_EQ(test.f_p_value, 1);
  EXPECT_THAT(test.average_ranks, ElementsAre(2, 2, 2));
  const FriedmanTest balanced = friedman(Table{{1, 2}, {2, 1}});
  EXPECT_EQ(balanced.chi_square, 0);
  EXPECT_EQ(balanced.f_p_value, 1);
}

TEST(Nemenyi, CriticalDifferenceAsPublished) {
  EXPECT_NEAR(nemenyi_critical_difference(4, 14), 1.25, 0.005);        // Demsar's example, at 5 %
  EXPECT_NEAR(nemenyi_critical_difference(4, 14, 0.90), 1.12, 0.005);  // at 10 %
  // Table 5 (a) of the paper: critical values for 2 to 10 classifiers are the quantiles over sqrt(2).
  const double table[] = {1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164};
  for (size_t k = 2; k <= 10; ++k)
    EXPECT_NEAR(normal_range_quantile(0.95, k) / std::sqrt(2.0), table[k - 2], 0.001) << k;
}

TEST(Nemenyi, RangeAsScipy) {
  struct Row {
    size_t k;
    double q90, q95, q99, cdf3;
  };
  // scipy.stats.studentized_range.ppf(p, k, numpy.inf) for p = 0.9, 0.95, 0.99, and .cdf(3, k, numpy.inf)
  const Row rows[] = {
      {2, 2.3261743073533476, 2.771807648699355, 3.642772735436894, 0.9661051464753106},
      {3, 2.9023802134282515, 3.314493155398122, 4.12030320646012, 0.9144574283450421},
      {7, 3.8080982570260042, 4.169554155006547, 4.882166194995566, 0.6601192456905174},
      {20, 4.694104409490512, 5.0116887941184425, 5.6452146979858515, 0.15374353380562766},
      {100, 5.812496242333562, 6.084637537173171, 6.635541907441475, 3.359821600712613e-06},
  };
  for (const Row& row : rows) {
    EXPECT_NEAR(normal_range_quantile(0.90, row.k), row.q90, 1e-9) << row.k;
    EXPECT_NEAR(normal_range_quantile(0.95, row.k), row.q95, 1e-9) << row.k;
    EXPECT_NEAR(normal_range_quantile(0.99, row.k), row.q99, 1e-9) << row.k;
    EXPECT_NEAR(normal_range_cdf(3, row.k), row.cdf3, 1e-12) << row.k;
  }
  EXPECT_EQ(normal_range_cdf(0, 3), 0);
  EXPECT_EQ(normal_range_cdf(-1, 3), 0);
  EXPECT_NEAR(normal_range_cdf(inf, 3), 1, 1e-12);
}

TEST(Friedman, RefusesBadInput) {
  expect_refused([] { friedman({}); }, Exit::data, "[Friedman test] too few folds; got 0, expected at least 2");
  expect_refused([] { friedman(Table{{1, 2, 3}}); }, Exit::data, "too few folds; got 1");
  expect_refused([] { friedman(Table{{1, 2}, {1, 2, 3}}); }, Exit::data, "got a row of 3, expected 2");
  expect_refused([] { friedman(Table{{1}, {2}}); }, Exit::data, "got a row of 1, expected 2");
  expect_refused([] { friedman(Table{{1, 2}, {1, nan}}); }, Exit::data, "value 2 of 2 is not finite");
  expect_refused([] { friedman(Table{{1, 2}, {}}); }, Exit::data, "too few values; got 0");
  expect_refused([] { nemenyi_critical_difference(1, 5); }, Exit::usage, "of 1 values, expected");
  expect_refused([] { nemenyi_critical_difference(3, 0); }, Exit::data, "too few folds; got 0");
  expect_refused([] { nemenyi_critical_difference(3, 5, 5); }, Exit::usage, "confidence level; got 5");
  expect_refused([] { normal_range_cdf(nan, 3); }, Exit::usage, "got range nan");
}

}  // namespace
}  // namespace normlab
