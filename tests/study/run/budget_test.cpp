// The study of `compare --budget`: sizes that grow with the time, texts that are short, durations.
#include "normlab/study/run/budget.h"

#include <gtest/gtest.h>

#include <fstream>

#include "normlab/base/error.h"
#include "normlab/config/flops.h"
#include "normlab/study/run/plan.h"
#include "sandbox.h"

namespace normlab {
namespace {

class BudgetStudy : public testing::Test {
 protected:
  // A text of so many characters, 26 distinct ones.
  std::string text(size_t length) {
    const std::string path = folder_ / "text.txt";
    std::ofstream file(path);
    for (size_t i = 0; i < length; ++i) file << static_cast<char>('a' + i * i % 26);
    return path;
  }
  static Plan plan(const Budget& budget, double speed) {
    return make_plan(budget_study(budget, [=](const Config&, int) { return speed; }), {});
  }
  TemporaryFolder folder_;
};

TEST(ParseDuration, TakesHoursMinutesAndSeconds) {
  EXPECT_EQ(parse_duration("90s"), 90.0);
  EXPECT_EQ(parse_duration("15m"), 900.0);
  EXPECT_EQ(parse_duration("1h30m"), 5400.0);
  EXPECT_EQ(parse_duration("0.5h"), 1800.0);
  for (const char* bad : {"", "15", "m", "15 minutes", "-3m", "0s", "30m1h", "5m5m", "nanm", "infh", "1e9h"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST_F(BudgetStudy, ComparesFourSchemesWithEqualTuningOnThreeFolds) {
  const Plan found = plan({.source = text(1'000'000), .seconds = 900, .jobs = 2}, 4e10);
  ASSERT_EQ(found.variants.size(), 4U);
  EXPECT_EQ(found.variants[0].label, "none");
  EXPECT_EQ(found.variants[2].label, "lp, p = 3, matched gain");
  EXPECT_EQ(found.folds.size(), 3U);
  EXPECT_EQ(found.spec.tune.key, "optim.lr");
  EXPECT_EQ(found.spec.tune.values.size(), 3U);
}

TEST_F(BudgetStudy, FitsTheTime) {
  const std::string source = text(1'000'000);
  int last_width = 0;
  for (const double seconds : {180.0, 900.0, 7200.0}) {
    const Plan found = plan({.source = source, .seconds = seconds, .jobs = 2}, 4e10);
    const Config& config = found.trials.front().config;
    const double of_run = flops_of_run(config, 26, 100'000) / 4e10 + 1.5;
    const double least = of_run * 4 * 6 / 2, most = of_run * 4 * 7 / 2;  // without and with an extended grid each
    EXPECT_LT(most, 1.2 * seconds);
    EXPECT_GT(least, 0.6 * seconds);
    EXPECT_GE(config.model.d_model, last_width);
    last_width = config.model.d_model;
  }
  EXPECT_GT(last_width, 64);
}

TEST_F(BudgetStudy, DoesNotRepeatAShortTextForEver) {
  const Plan found = plan({.source = text(20'000), .seconds = 7200, .jobs = 2}, 4e10);
  const Config& config = found.trials.front().config;
  const double tokens = static_cast<double>(config.train.max_steps) * config.train.batch_size * config.model.seq_len;
  EXPECT_LE(tokens, 10.0 * 18'000);
}

TEST_F(BudgetStudy, TakesTheSchemesThatAreListed) {
  const Plan found = plan({.source = text(1'000'000), .seconds = 600, .jobs = 2, .schemes = {"rms", "softcap"}}, 4e10);
  ASSERT_EQ(found.variants.size(), 2U);
  EXPECT_EQ(found.variants[1].label, "softcap");
  EXPECT_THROW(plan({.source = text(1'000'000), .seconds = 600, .jobs = 2, .schemes = {"rsm"}}, 4e10), UsageError);
}

TEST_F(BudgetStudy, RefusesATimeThatIsTooShort) {
  EXPECT_THROW(plan({.source = text(1'000'000), .seconds = 10, .jobs = 2}, 4e10), UsageError);
}

}  // namespace
}  // namespace normlab
