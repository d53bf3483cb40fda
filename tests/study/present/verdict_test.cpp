// The verdict in words, for studies that are clear, unclear, unfinished or empty.
#include "normlab/study/present/verdict.h"

#include <gmock/gmock.h>

#include "normlab/base/random.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string ten_folds = "p = [2, 3]\n";
const double noise[] = {1, -1, 2, -2, 0.5, -0.5, 1.5, -1.5, 0.2, -0.2};

StudyResults with_effect(double effect, double spread, const std::string& plan = ten_folds) {
  return sample_results(sample_plan(plan), [=](size_t variant, int fold, int64_t) {
    return 2 + 0.1 * fold + (variant == 0 ? 0 : effect + spread * noise[fold]);
  });
}
Verdict of(const StudyResults& results) { return verdict(results, analyse(results)); }

TEST(Verdict, ShownToBeBetter) {
  const Verdict found = of(with_effect(-0.02, 0.001));
  EXPECT_THAT(found.sentence, AllOf(HasSubstr("p = 3 beats p = 2: its final loss is 0.0200 \xC2\xB1 0.00"),
                                    HasSubstr(" %) lower over 10 folds (95 % interval; p-value below 0.001).")));
  EXPECT_THAT(found.detail, HasSubstr("p = 3 reaches the final loss of p = 2 in all 10 folds, with a speed-up of 1.0"));
  EXPECT_THAT(found.notices, IsEmpty());
  ASSERT_EQ(found.figures.size(), 3u);
  EXPECT_THAT(found.figures[0].value, testing::StartsWith("\xE2\x88\x92"
                                                          "0.0200 \xC2\xB1 0.00"));
  EXPECT_THAT(found.figures[0].label, HasSubstr("p = 3 against p = 2; 95 % interval over 10 folds"));
  EXPECT_THAT(found.figures[2].label, HasSubstr("reached in all 10 folds"));
}

TEST(Verdict, ATieIsCalledOne) {
  const Verdict found = of(with_effect(-0.0002, 0.01));
  EXPECT_THAT(found.sentence,
              AllOf(HasSubstr("Nothing beats p = 2 here; p = 3 ties with it: difference 0.000 \xC2\xB1 0.0"),
                    HasSubstr(" nats over 10 folds (95 % interval; p-value 0.")));
  EXPECT_THAT(found.sentence, Not(HasSubstr("0.0002")));
}

TEST(Verdict, WithinChance) {
  EXPECT_THAT(of(with_effect(-0.008, 0.01)).sentence,
              AllOf(HasSubstr("Nothing is shown to beat p = 2: the lowest, p = 3, has a final loss 0.008 \xC2\xB1 0.0"),
                    HasSubstr("lower, which may be chance, over 10 folds")));
}

TEST(Verdict, BaselineIsBest) {
  const Verdict found = of(with_effect(0.02, 0.001));
  EXPECT_THAT(found.sentence,
              HasSubstr("Nothing beats p = 2 here; the nearest, p = 3, has a final loss 0.0200 \xC2\xB1 0.00"));
  EXPECT_THAT(found.detail, AllOf(HasSubstr("Worse: p = 3."), HasSubstr("in 0 of 10 folds")));
}

// "Within chance" beside an interval without 0, or a difference beside one with it, would contradict each other.
TEST(Verdict, IntervalsSayWhatTheTestsSay) {
  const Plan plan = sample_plan("p = [2, 3, 4, 5, 6]\n[data]\nfolds = 10\nfold = [0, 1, 2, 3, 4]\n");
  size_t chance = 0, shown = 0, plain_disagree = 0;
  for (uint64_t study = 0; study < 400; ++study) {
    const StudyResults results = sample_results(plan, [&](size_t variant, int fold, int64_t) {
      const uint64_t key = stream_key(80, study, variant);
      return 2 + 0.1 * fold + (variant == 0 ? 0 : 0.06 * (draw_uniform(key, 99) - 0.5)) +
             0.02 * (draw_uniform(key, static_cast<uint64_t>(fold)) - 0.5);
    });
    const Analysis analysis = analyse(results);
    for (const Comparison& each : analysis.comparisons) {
      const auto excludes_zero = [](const Interval& interval) { return interval.low > 0 || interval.high < 0; };
      ASSERT_EQ(differs(each), excludes_zero(*each.adjusted)) << study;
      ASSERT_EQ(differs(each), *each.holm_p <= 0.05);
      plain_disagree += differs(each) != excludes_zero(each.t->interval);
    }
    // As printed: a difference that is shown is larger than what stands after its plus-minus.
    const std::string sentence = verdict(results, analysis).sentence;
    const auto sign = sentence.find(" \xC2\xB1 ");
    ASSERT_NE(sign, std::string::npos) << sentence;
    ASSERT_NE(sentence.find("adjusted 95 % interval; adjusted p-value "), std::string::npos) << sentence;
    const auto begin = sentence.find_last_not_of("0123456789.", sign - 1) + 1;
    const double mean = std::stod(sentence.substr(begin, sign - begin)), half = std::stod(sentence.substr(sign + 4));
    const bool above_zero = mean > half;
    ASSERT_EQ(differs(*best_comparison(analysis)), above_zero) << sentence;
    ASSERT_FALSE(above_zero &&
                 (sentence.find("may be chance") != std::string::npos || sentence.find("ties") != std::string::npos))
        << sentence;
    ++(above_zero ? shown : chance);
  }
  EXPECT_GT(chance, 20u);
  EXPECT_GT(shown, 20u);
  EXPECT_GT(plain_disagree, 20u);  // plain 95 % intervals would have contradicted the tests
}

TEST(Verdict, ADifferenceIsPrintedLargerThanItsInterval) {
  // One comparison, whose interval ends just short of 0: with two digits both would look the same.
  const StudyResults results = with_effect(-0.01348, 0.01);
  const Analysis analysis = analyse(results);
  ASSERT_TRUE(differs(analysis.comparisons[0])) << *analysis.comparisons[0].holm_p;
  ASSERT_LT(-analysis.comparisons[0].adjusted->high, 0.0005);
  EXPECT_THAT(of(results).sentence, Not(HasSubstr("0.013 \xC2\xB1 0.013")));
  EXPECT_THAT(of(results).sentence, HasSubstr("p = 3 beats p = 2: its final loss is 0.013"));
}

// One of three folds reaches the baseline's loss: that must be said, and the others count.
TEST(Verdict, SaysHowManyFoldsReachTheTarget) {
  const StudyResults results =
      sample_results(sample_plan("p = [2, 3]\n[data]\nfold = [0, 1, 2]\n"), [](size_t variant, int fold, int64_t) {
        return 2 + (variant == 0 ? 0 : fold == 0 ? -0.5 : 0.02);
      });
  const Verdict found = of(results);
  EXPECT_THAT(found.detail, AllOf(HasSubstr("p = 3 reaches the final loss of p = 2 in 1 of 3 folds"),
                                  HasSubstr("the other folds counted as not faster, the speed-up is at most 1.08x")));
  ASSERT_EQ(found.figures.size(), 3u);
  EXPECT_EQ(found.figures[2].value, "\xE2\x89\xA4 1.08x");
  EXPECT_THAT(found.figures[2].label, HasSubstr("reached in 1 of 3 folds"));
}

TEST(Verdict, OneFold) {
  const Verdict found = of(with_effect(-0.02, 0, "p = [2, 3]\n[data]\nfold = [4]\n"));
  EXPECT_THAT(found.sentence, AllOf(HasSubstr("0.020 nats lower than p = 2 in one fold, which does not show whether"),
                                    Not(HasSubstr("interval")), Not(HasSubstr("p-value"))));
  EXPECT_THAT(found.notices, Contains(HasSubstr("The study has one fold and one seed")));
}

TEST(Verdict, SaysWhatIsMissing) {
  StudyResults results = with_effect(-0.02, 0.001);
  results.trials[1].record = {.status = TrialStatus::crashed, .message = "out of memory"};
  results.trials[3].record.status = TrialStatus::diverged;
  results.trials[4].record.status = TrialStatus::missing;
  const Verdict found = of(results);
  EXPECT_THAT(found.notices, Contains(HasSubstr("17 of 20 trials finished, 1 diverged, 1 missing, 1 crashed")));
  EXPECT_THAT(found.notices, Contains(HasSubstr("p = 3, fold 0 crashed: out of memory")));
  EXPECT_THAT(found.notices, Contains(HasSubstr("p = 3 diverged in 1 of 10 trials. These trials are excluded")));
  EXPECT_THAT(found.sentence, HasSubstr("7 folds"));
}

TEST(Verdict, ManyTroublesAreCounted) {
  StudyResults results = with_effect(-0.02, 0.001);
  for (size_t i = 0; i < 9; ++i) results.trials[i].record = {.status = TrialStatus::damaged, .message = "gone"};
  EXPECT_THAT(of(results).notices, Contains(HasSubstr("and 4 more, listed in trials.csv")));
}

TEST(Verdict, NothingToSayYet) {
  StudyResults results = with_effect(-0.02, 0.001);
  for (TrialResult& trial : results.trials)
    if (trial.variant == 0) trial.record.status = TrialStatus::started;
  EXPECT_THAT(of(results).sentence, HasSubstr("No comparison is possible yet"));
  for (TrialResult& trial : results.trials) trial.record.status = TrialStatus::missing;
  const Verdict empty = of(results);
  EXPECT_EQ(empty.sentence, "No trial has finished yet: 0 of 20 trials.");
  EXPECT_THAT(empty.detail, IsEmpty());
  EXPECT_THAT(empty.figures, IsEmpty());
}

TEST(Verdict, LabelsOfTwoAxesAreSpoken) {
  const Verdict found = of(with_effect(-0.02, 0.001, "p = [2, 3]\ngain_init = [\"1\"]\n[data]\nfold = [0, 1, 2]\n"));
  EXPECT_THAT(found.sentence, HasSubstr("p = 3 with gain_init = 1 beats p = 2 with gain_init = 1: its final loss is"));
}

}  // namespace
}  // namespace normlab
