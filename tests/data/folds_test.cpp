// Folds: nanoGPT's split, even sizes, and a partition of the text for every size.
#include "normlab/data/folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "normlab/base/error.h"

namespace normlab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Folds, LastOfTenIsNanoGptsSplit) {
  const Split split = make_split(1115394, 10, 9);
  EXPECT_EQ(split.held_out, (TokenRange{1003854, 1115394}));
  EXPECT_EQ(split.held_out.size(), 111540);
  EXPECT_THAT(split.train, ElementsAre(TokenRange{0, 1003854}));
}

TEST(Folds, TinyShakespeareBlocksAreEven) {
  for (int fold = 0; fold < 10; ++fold) {
    const int64_t size = make_split(1115394, 10, fold).held_out.size();
    EXPECT_TRUE(size == 111539 || size == 111540) << size;
  }
}

TEST(Folds, PartitionTheText) {
  for (const int64_t n : {0, 1, 7, 31, 32, 33, 127, 1000})
    for (const int folds : {2, 3, 7, 10, 33}) {
      int64_t next = 0;
      for (int fold = 0; fold < folds; ++fold) {
        const Split split = make_split(n, folds, fold);
        EXPECT_EQ(split.held_out.begin, next);
        EXPECT_TRUE(split.held_out.size() == n / folds || split.held_out.size() == n / folds + 1);
        next = split.held_out.end;
        int64_t rest = 0;
        for (const TokenRange& segment : split.train) {
          EXPECT_GT(segment.size(), 0);
          EXPECT_TRUE(segment.end <= split.held_out.begin || segment.begin >= split.held_out.end);
          rest += segment.size();
        }
        EXPECT_EQ(rest + split.held_out.size(), n);
      }
      EXPECT_EQ(next, n);
    }
}

TEST(Folds, LongTextsDoNotOverflow) {
  const int64_t n = std::numeric_limits<int64_t>::max();
  const Split split = make_split(n, 1000, 999);
  EXPECT_EQ(split.held_out.end, n);
  EXPECT_GE(split.held_out.size(), n / 1000);
}

TEST(Folds, RefuseBadNumbers) {
  EXPECT_THAT([] { make_split(100, 1, 0); }, ThrowsMessage<UsageError>(HasSubstr("[data.folds]")));
  EXPECT_THAT([] { make_split(100, 10, 10); },
              ThrowsMessage<UsageError>(AllOf(HasSubstr("[data.fold]"), HasSubstr("expected 0 to 9"))));
  EXPECT_THROW(make_split(100, 10, -1), UsageError);
}

TEST(Folds, RequireAWindowInEachPart) {
  const Split split = make_split(100, 10, 4);  // 40 + 10 + 50
  EXPECT_NO_THROW(require_windows(split, 9));
  EXPECT_THAT(
      [&] { require_windows(split, 10); },
      ThrowsMessage<DataError>(HasSubstr("the held-out part has 10 tokens; a window of seq_len=10 needs 11. Use "
                                         "a shorter model.seq_len, fewer folds (data.folds) or more text")));
  const Split lopsided{.train = {{0, 5}, {25, 32}}, .held_out = {5, 25}};
  EXPECT_NO_THROW(require_windows(lopsided, 6));
  EXPECT_THAT([&] { require_windows(lopsided, 7); },
              ThrowsMessage<DataError>(HasSubstr("the longest training part has 7 tokens")));
}

TEST(Folds, CountWindowStarts) {
  EXPECT_EQ(window_starts({10, 20}, 9), 1);  // 9 inputs and the last target
  EXPECT_EQ(window_starts({10, 20}, 10), 0);
  EXPECT_EQ(window_starts({10, 20}, 11), 0);
  EXPECT_EQ(window_starts({0, 1003854}, 256), 1003598);  // nanoGPT: len(data) - block_size
}

}  // namespace
}  // namespace normlab
