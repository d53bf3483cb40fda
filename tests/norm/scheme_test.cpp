#include "norm/scheme.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"

namespace normlab {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(Catalogue, RowsAreNamedOnceAndExplained) {
  std::set<std::string> names;
  for (const NormScheme& row : catalogue()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.title.empty() || row.equation.empty() || row.source.empty()) << row.name;
    EXPECT_NO_THROW(check(row)) << row.name;
  }
}

TEST(Catalogue, UnknownNameGetsASuggestion) {
  EXPECT_THAT([] { find_scheme("qknrom"); }, testing::ThrowsMessage<UsageError>(testing::HasSubstr("'qknorm'")));
}

TEST(Scheme, FieldsRoundTripThroughText) {
  for (const NormScheme& row : catalogue()) {
    NormScheme from = row, to;
    FieldList a, b;
    list_fields(from, a);
    list_fields(to, b);
    for (const Setting& setting : parse_toml(to_toml(a), "row")) apply(b, setting);
    EXPECT_EQ(to_toml(a), to_toml(b)) << row.name;
  }
}

TEST(Scheme, RefusesWhatMakesNoSense) {
  NormScheme scheme = find_scheme("none");
  scheme.learn_p = true;
  EXPECT_THROW(check(scheme), UsageError);
  scheme = find_scheme("lp");
  scheme.learn_p = true;
  scheme.p = 1.0;
  EXPECT_THROW(check(scheme), UsageError);
  scheme.p = inf;
  EXPECT_THROW(check(scheme), UsageError);
  scheme = find_scheme("none");
  scheme.gain_init = *GainInit::parse("matched");
  EXPECT_THROW(check(scheme), UsageError);
}

TEST(GainInit, ReadsNumbersAndRules) {
  for (const char* text : {"log2(L^2-L)", "sqrt(d_head)", "matched", "1.5", "10"})
    EXPECT_EQ(GainInit::parse(text)->text(), text);
  EXPECT_FALSE(GainInit::parse("banana") || GainInit::parse("inf") || GainInit::parse(""));
}

// Lengths and values of the QKNorm authors' configurations.
TEST(InitialGain, FollowsItsRules) {
  NormScheme scheme = find_scheme("qknorm");
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 72}), 12.3197, 1e-4);
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 79}), 12.5892, 1e-4);
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}), 15.9944, 1e-4);
  scheme.gain_init = *GainInit::parse("sqrt(d_head)");
  EXPECT_DOUBLE_EQ(initial_gain(scheme, {.d_head = 64, .length = 256}), 8.0);
  scheme.gain_init = *GainInit::parse("2.5");
  EXPECT_DOUBLE_EQ(initial_gain(scheme, {.d_head = 64, .length = 256}), 2.5);
}

TEST(InitialGain, MatchedGivesP2ItsOwnGainAndOthersTheSameSpread) {
  NormScheme scheme = find_scheme("lp");
  scheme.gain_init = *GainInit::parse("matched");
  scheme.p = 2.0;
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}), 15.9944, 1e-4);
  // The large-d formula gain * (d m_p)^(2/p) / d, m_p = E|z|^p: within 4 % at d = 64 and p <= 4.
  for (double p : {1.0, 1.5, 2.5, 3.0, 3.5, 4.0}) {
    scheme.p = p;
    const double m = std::pow(2.0, p / 2) * std::tgamma((p + 1) / 2) / std::sqrt(M_PI);
    const double formula = 15.9944 * std::pow(64 * m, 2 / p) / 64;
    EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}), formula, 0.04 * formula) << p;
  }
  scheme.p = inf;
  EXPECT_NEAR(initial_gain(scheme, {.d_head = 64, .length = 256}) / 15.9944, 0.102, 0.003);
}

}  // namespace
}  // namespace normlab
