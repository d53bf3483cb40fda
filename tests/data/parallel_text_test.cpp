// Parallel text: alignment, and which pairs are dropped and reported.
#include "normlab/data/parallel_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ParallelTextFiles : public testing::Test {
 protected:
  ParallelText load(const std::string& source, const std::string& target) const {
    write_file_atomically(folder_ / "x.gl", source);
    write_file_atomically(folder_ / "x.en", target);
    return load_parallel_text(folder_ / "x.gl", folder_ / "x.en");
  }
  std::string refusal(const std::string& source, const std::string& target) const {
    try {
      load(source, target);
    } catch (const DataError& error) {
      return error.what();
    }
    return "not refused";
  }
  TemporaryFolder folder_;
};

TEST_F(ParallelTextFiles, KeepsLinesAligned) {
  const ParallelText text = load("un\r\n\r\ntres\r\n", "one\n\nthree");
  EXPECT_THAT(text.source, ElementsAre("un", "", "tres"));
  EXPECT_THAT(text.target, ElementsAre("one", "", "three"));
}

TEST_F(ParallelTextFiles, RefusesMisalignedFiles) {
  EXPECT_THAT(refusal("a\nb\nc\n", "a\nb\n"), AllOf(HasSubstr("got 3 and 2 lines"), HasSubstr("differ from line 3"),
                                                    HasSubstr("which only " + (folder_ / "x.gl").string())));
  EXPECT_THAT(refusal("a\n", "a\n\n"), AllOf(HasSubstr("differ from line 2"), HasSubstr("x.en has")));
  EXPECT_THAT(refusal("a\nb\xC3\n", "a\nb\n"), AllOf(HasSubstr("x.gl"), HasSubstr("line 2")));
}

TEST(ParallelText, CountsTokens) {
  EXPECT_EQ(count_tokens(""), 0);
  EXPECT_EQ(count_tokens("   "), 0);
  EXPECT_EQ(count_tokens(" a@@  b c "), 3);
}

TEST(ParallelText, DropsUnusablePairs) {
  ParallelText text{.source = {"a b", "", "a", " ", "a b c d", "a"}, .target = {"x", "x", "", "", "x", "x y z v"}};
  const DroppedPairs dropped = drop_unusable_pairs(text, 3);
  EXPECT_THAT(text.source, ElementsAre("a b"));
  EXPECT_THAT(text.target, ElementsAre("x"));
  EXPECT_EQ(dropped.total(), 5);
  EXPECT_EQ(dropped.describe(),
            "dropped 5 of 6 pairs: 2 with an empty source (first at line 2), 1 with an empty target (first at line 3), "
            "2 with a side that is too long for 3 tokens (first at line 5)");
}

TEST(ParallelText, WithoutALimitLengthDoesNotMatter) {
  ParallelText text{.source = {"a b c"}, .target = {"x"}};
  EXPECT_EQ(drop_unusable_pairs(text, 0).describe(), "dropped 0 of 1 pairs");
}

}  // namespace
}  // namespace normlab
