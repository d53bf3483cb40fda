// The verdict in words, for studies that are clear, unclear, unfinished or empty.
#include "study/verdict.h"

#include <gmock/gmock.h>

#include "sample_study.h"

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
  EXPECT_THAT(found.sentence,
              AllOf(HasSubstr("p = 3 ends 0.020 nats (0.8 %) below p = 2; 95 % interval 0.019 to 0.021"),
                    HasSubstr("Holm-corrected p < 0.001; 10 folds.")));
  EXPECT_THAT(found.detail, HasSubstr("p = 3 reaches the loss at which p = 2 ends 1.0"));
  EXPECT_THAT(found.notices, IsEmpty());
  ASSERT_EQ(found.figures.size(), 4u);
  EXPECT_EQ(found.figures[0].value,
            "\xE2\x88\x92"
            "0.020 nats");
}

TEST(Verdict, WithinChance) {
  EXPECT_THAT(of(with_effect(-0.002, 0.01)).sentence,
              AllOf(HasSubstr("No variant is shown to be better than p = 2: the lowest, p = 3, ends 0.0020 nats"),
                    HasSubstr("within chance; 95 % interval \xE2\x88\x92"), HasSubstr("Holm-corrected p = 0.")));
}

TEST(Verdict, BaselineIsBest) {
  const Verdict found = of(with_effect(0.02, 0.001));
  EXPECT_THAT(found.sentence,
              HasSubstr("No variant ends below p = 2: the nearest, p = 3, ends 0.020 nats (0.8 %) above it; 95 % "
                        "interval 0.019 to 0.021"));
  EXPECT_THAT(found.detail, AllOf(HasSubstr("Worse: p = 3."), HasSubstr("in 0 of 10 folds")));
}

TEST(Verdict, OneFold) {
  const Verdict found = of(with_effect(-0.02, 0, "p = [2, 3]\n[data]\nfold = [4]\n"));
  EXPECT_THAT(found.sentence, AllOf(HasSubstr("one fold, which cannot say whether this is chance"),
                                    Not(HasSubstr("interval")), Not(HasSubstr("Holm"))));
  EXPECT_THAT(found.notices, Contains(HasSubstr("The study has one fold.")));
}

TEST(Verdict, SaysWhatIsMissing) {
  StudyResults results = with_effect(-0.02, 0.001);
  results.trials[1].record = {.status = TrialStatus::crashed, .message = "out of memory"};
  results.trials[3].record.status = TrialStatus::diverged;
  results.trials[4].record.status = TrialStatus::missing;
  const Verdict found = of(results);
  EXPECT_THAT(found.notices, Contains(HasSubstr("17 of 20 trials finished, 1 diverged, 1 missing, 1 crashed")));
  EXPECT_THAT(found.notices, Contains(HasSubstr("p = 3, fold 0 crashed: out of memory")));
  EXPECT_THAT(found.notices, Contains(HasSubstr("p = 3 diverged in 1 of 10 trials. These are left out")));
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
  EXPECT_THAT(of(results).sentence, HasSubstr("Nothing can be compared yet"));
  for (TrialResult& trial : results.trials) trial.record.status = TrialStatus::missing;
  const Verdict empty = of(results);
  EXPECT_EQ(empty.sentence, "Nothing has finished yet: 0 of 20 trials.");
  EXPECT_THAT(empty.detail, IsEmpty());
  EXPECT_THAT(empty.figures, IsEmpty());
}

TEST(Verdict, LabelsOfTwoAxesAreSpoken) {
  const Verdict found = of(with_effect(-0.02, 0.001, "p = [2, 3]\ngain_init = [\"1\"]\n[data]\nfold = [0, 1, 2]\n"));
  EXPECT_THAT(found.sentence, HasSubstr("p = 3 with gain_init = 1 ends"));
}

}  // namespace
}  // namespace normlab
