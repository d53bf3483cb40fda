#include "normlab/probe/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Watchdog, BarksAtALossSpikeAfterFiftySteps) {
  Watchdog dog(0);
  for (int64_t step = 1; step < 50; ++step) EXPECT_THAT(dog.after_step(step, step == 20 ? 9.0 : 2.0, 1.0), IsEmpty());
  EXPECT_THAT(dog.after_step(50, 2.4, 5.0), IsEmpty());
  EXPECT_THAT(dog.after_step(51, 11.5, 5.0), ElementsAre(HasSubstr("loss spike at step 51: the loss is 11.50")));
  EXPECT_THAT(dog.after_step(52, 2.4, 51.0), ElementsAre(HasSubstr("exploding gradient at step 52")));
}

TEST(Watchdog, NamesLayerHeadMeaningAndAnswerOnce) {
  Watchdog dog(100);
  const std::vector<Reading> collapsed = {{Quantity::relative_entropy, 3, -1, 0.01},  // of a layer: not looked at
                                          {Quantity::relative_entropy, 3, 0, 0.5},
                                          {Quantity::relative_entropy, 3, 1, 0.04},
                                          {Quantity::relative_entropy, 4, 0, 0.01}};
  const auto lines = dog.after_probe(7, collapsed);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0],
              HasSubstr("entropy collapse at step 7: layer 3, head 1 has relative_entropy = 0.0400, and 1 more"));
  EXPECT_THAT(lines[0], HasSubstr("It means: "));
  EXPECT_THAT(lines[0], HasSubstr("norm.scheme=qknorm"));
  EXPECT_THAT(dog.after_probe(8, collapsed), IsEmpty());
  EXPECT_EQ(dog.after_probe(9, {{Quantity::relative_entropy, 3, 0, 0.01}}).size(), 1U);  // another head
}

TEST(Watchdog, GoesOnWithWhatItHasSeen) {
  const std::vector<Reading> collapsed = {{Quantity::relative_entropy, 3, 1, 0.01}};
  Watchdog dog(0);
  for (int64_t step = 1; step <= 50; ++step) dog.after_step(step, 2.0, 1.0);
  dog.after_probe(50, collapsed);
  Watchdog resumed(0);
  resumed.restore(dog.memory());
  EXPECT_THAT(resumed.after_probe(51, collapsed), IsEmpty());
  EXPECT_THAT(resumed.after_step(51, 2.6, 11.0), testing::SizeIs(2));
}

TEST(Watchdog, DoesNotRecommendASchemeThatIsInUse) {
  const std::vector<Reading> bad = {{Quantity::relative_entropy, 3, 1, 0.01},
                                    {Quantity::saturated, 0, 0, 0.6},
                                    {Quantity::max_logit, 1, 0, 101.0},
                                    {Quantity::grad_w_k, 1, -1, 1e-8}};
  for (const char* scheme : {"lp", "qknorm", "rms", "cosine", "softcap", "ngpt"}) {
    Watchdog dog(0, bounds_logits(find_scheme(scheme)));
    const auto lines = dog.after_probe(1, bad);
    ASSERT_EQ(lines.size(), 4U);
    for (const std::string& line : lines) {
      EXPECT_THAT(line, testing::Not(HasSubstr("norm.scheme="))) << scheme;
      EXPECT_THAT(line, HasSubstr("gain")) << scheme;
    }
  }
  Watchdog plain(0, bounds_logits(find_scheme("none")));
  for (const std::string& line : plain.after_probe(1, bad)) EXPECT_THAT(line, HasSubstr("norm.scheme=qknorm"));
}

TEST(Watchdog, TellsTheAttentionsOfATranslatorApart) {
  Watchdog dog(100);
  const auto logit = [](Stack stack) { return std::vector<Reading>{{Quantity::max_logit, 1, 0, 200.0, stack}}; };
  EXPECT_THAT(dog.after_probe(1, logit(Stack::encoder)),
              ElementsAre(HasSubstr("encoder layer 1, head 0 has max_logit")));
  EXPECT_THAT(dog.after_probe(2, logit(Stack::decoder)), ElementsAre(HasSubstr("decoder layer 1, head 0 has")));
  EXPECT_THAT(dog.after_probe(3, logit(Stack::cross)), ElementsAre(HasSubstr("cross-attention layer 1, head 0 has")));
  EXPECT_THAT(dog.after_probe(4, logit(Stack::cross)), IsEmpty());
}

TEST(Watchdog, EveryRuleOfAProbe) {
  Watchdog dog(100);
  const std::vector<Reading> readings = {{Quantity::saturated, 0, 0, 0.6},
                                         {Quantity::max_logit, 1, 0, 101.0},
                                         {Quantity::min_logit, 2, 0, -101.0},
                                         {Quantity::grad_w_k, 1, -1, 1e-8},
                                         {Quantity::relative_entropy, 0, 1, 0.995}};
  EXPECT_THAT(dog.after_probe(99, readings),
              ElementsAre(HasSubstr("saturation"), HasSubstr("logit growth at step 99: layer 1, head 0"),
                          HasSubstr("layer 2, head 0 has min_logit"), HasSubstr("vanishing gradient")));
  EXPECT_THAT(dog.after_probe(100, readings), ElementsAre(HasSubstr("uniform attention at step 100: layer 0, head 1")));
  EXPECT_EQ(watchdogs().size(), 7U);
}

}  // namespace
}  // namespace normlab
