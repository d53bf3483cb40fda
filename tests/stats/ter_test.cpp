// TER: edits that sacreBLEU 2.6.0 finds, and long sentences within a limit of time.
#include "normlab/stats/ter.h"

#include <gtest/gtest.h>

#include "normlab/base/random.h"
#include "translation_examples.h"

namespace normlab {
namespace {

int64_t edits(const std::string& hypothesis, const std::string& reference) {
  TokenIds ids;
  const WordIds words = ids(words_of(hypothesis));
  return translation_edits(words, ids(words_of(reference)));
}

TEST(Ter, CountsEdits) {
  EXPECT_EQ(edits("a b c", "a b c"), 0);
  EXPECT_EQ(edits("a x b", "a b"), 1);
  EXPECT_EQ(edits("x a b c y", "a b c"), 2);
  EXPECT_EQ(edits("", "a b"), 2);
  EXPECT_EQ(edits("a b", ""), 2);
  EXPECT_EQ(edits("", ""), 0);
}

TEST(Ter, AShiftIsOneEdit) {
  EXPECT_EQ(edits("a b c d e", "d e a b c"), 1);
  EXPECT_EQ(edits("b a c", "a b c"), 1);
  EXPECT_EQ(edits("1 2 3 4 5 6 7 8", "7 8 3 4 1 2 5 6"), 2);
  // A first shift that saves no more than itself, and a second one that does.
  EXPECT_EQ(edits("d f d f c", "d d c f f"), 2);
  EXPECT_EQ(edits("d c c c b f f e", "f e c c c f d b"), 3);
}

TEST(Ter, EqualsSacrebleu) {
  for (const auto& [references, expected] : {std::pair(1, 44.44444444444444), std::pair(2, 18.181818181818183)}) {
    StatisticRows rows;
    for (const Segment& segment : example_segments(static_cast<size_t>(references)))
      rows.push_back(ter_statistics(segment));
    EXPECT_DOUBLE_EQ(ter(sum_rows(rows)), expected);
  }
}

TEST(Ter, EmptyReferences) {
  const std::vector<double> wordless = {3, 0}, nothing = {0, 0};
  EXPECT_EQ(ter(wordless), 100);
  EXPECT_EQ(ter(nothing), 0);
}

// Only a band of the matrix is kept: the whole of it would take gigabytes here.
TEST(Ter, LongSentences) {
  WordIds hypothesis(20000), reference(20000);
  for (size_t i = 0; i < hypothesis.size(); ++i) {
    hypothesis[i] = static_cast<int32_t>(i);
    reference[i] = static_cast<int32_t>(i + 1 < reference.size() ? i + 1 : 0);
  }
  EXPECT_LE(translation_edits(hypothesis, reference), 2);
  const WordIds one = {5};
  EXPECT_EQ(translation_edits(one, reference), 20000);  // the match lies outside the band, as it does for sacreBLEU
  EXPECT_EQ(translation_edits(hypothesis, one), 19999);
}

// A block may be moved to just behind itself: words on, not onto its own place.
TEST(Ter, AShiftToTheEndOfItsOwnBlock) { EXPECT_EQ(edits("e c a c a", "d a a e b b e c c"), 7); }

// The search ends after a number of candidates, of which a place that two words are aligned to is one.
TEST(Ter, APlaceIsTriedOnce) {
  EXPECT_EQ(edits("a a a b a b b b a a a a a a b a b a b b b a b a b a b a",
                  "b b a a a b a a b b a b a b b a b b a a b a a b b a a b"),
            7);
}

}  // namespace
}  // namespace normlab
