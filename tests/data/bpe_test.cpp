// BPE: codes and vocabulary files, segmentation as subword-nmt 0.3.8 does it, dropout.
#include "normlab/data/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const BpeCodes codes = {{"l", "o"}, {"lo", "w</w>"}, {"e", "r</w>"}, {"lo", "w"}, {"low", "er</w>"}, {"a", "a"}};

class BpeFiles : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) const {
    write_file_atomically(folder_ / "file", content);
    return folder_ / "file";
  }
  template <class Read>
  std::string refusal(const std::string& content, Read read) const {
    try {
      read(file(content));
    } catch (const DataError& error) {
      return error.what();
    }
    return "not refused";
  }
  TemporaryFolder folder_;
};

TEST_F(BpeFiles, CodesRoundTrip) {
  EXPECT_EQ(to_text({{"l", "o"}, {"lo", "w</w>"}}), "#version: 0.2\nl o\nlo w</w>\n");
  EXPECT_EQ(read_bpe_codes(file(to_text(codes))), codes);
}

TEST_F(BpeFiles, RefusesOtherCodes) {
  const auto reason = [this](const std::string& content) { return refusal(content, read_bpe_codes); };
  EXPECT_THAT(reason("l o\n"), HasSubstr("version 0.2"));
  EXPECT_THAT(reason("#version: 0.1\nl o\n"), HasSubstr("got '#version: 0.1'"));
  EXPECT_THAT(reason("#version: 0.2\n"), HasSubstr("no merges"));
  EXPECT_THAT(reason("#version: 0.2\nl o\nl o w\n"), HasSubstr("line 3"));
  EXPECT_THAT(reason("#version: 0.2\nlo\n"), HasSubstr("line 2"));
}

TEST_F(BpeFiles, Vocabulary) {
  EXPECT_THAT(read_bpe_vocabulary(file("lo@@ 9\nw 5\ner 4\n"), 5), testing::UnorderedElementsAre("lo@@", "w"));
  const auto reason = [this](const std::string& content) {
    return refusal(content, [](const auto& path) { read_bpe_vocabulary(path, 5); });
  };
  EXPECT_THAT(reason("lo@@ 9\nw\n"), HasSubstr("line 2"));
  EXPECT_THAT(reason("lo@@ many\n"), HasSubstr("line 1"));
  EXPECT_THAT(reason("lo@@ 4\n"), HasSubstr("smaller threshold"));
}

TEST(Bpe, CountsWords) {
  WordCounts counts;
  counts.add_line("  b a  b\u00a0c \r");
  counts.add_line("a a");
  counts.add("z", 2);
  EXPECT_EQ(counts.to_text(), "a 3\nz 2\nb 1\nb\u00a0c 1\n");
}

TEST(Bpe, SegmentsWords) {
  BpeSegmenter segmenter(codes);
  EXPECT_THAT(segmenter.segment("low"), ElementsAre("low"));
  EXPECT_THAT(segmenter.segment("lower"), ElementsAre("lower"));
  EXPECT_THAT(segmenter.segment("lows"), ElementsAre("low", "s"));
  EXPECT_THAT(segmenter.segment("aaaé"), ElementsAre("aa", "a", "é"));
  EXPECT_THAT(segmenter.segment("x"), ElementsAre("x"));
  EXPECT_TRUE(segmenter.segment("").empty());
}

TEST(Bpe, SegmentsLines) {
  BpeSegmenter segmenter(codes);
  EXPECT_EQ(segmenter.segment_line(" low   lows x "), " low low@@ s x ");
  EXPECT_EQ(segmenter.segment_line("  "), "  ");
  EXPECT_EQ(segmenter.segment_line(""), "");
  EXPECT_EQ(segmenter.segment_line("\tlow\r"), "\t@@ low\r");
}

TEST(Bpe, SplitsWhatTheVocabularyLacks) {
  BpeSegmenter segmenter(codes, {"lo@@", "w@@", "er", "w"});
  EXPECT_THAT(segmenter.segment("lower"), ElementsAre("lo", "w", "er"));
  EXPECT_THAT(segmenter.segment("low"), ElementsAre("lo", "w"));
  EXPECT_THAT(segmenter.segment("aa"), ElementsAre("a", "a"));
  BpeSegmenter none(codes, {"other"});
  EXPECT_THAT(none.segment("lower"), ElementsAre("l", "o", "w", "e", "r"));
}

TEST(Bpe, OfEqualMergesTheFirstCounts) {
  BpeSegmenter segmenter({{"b", "c</w>"}, {"a", "b"}, {"b", "c</w>"}});
  EXPECT_THAT(segmenter.segment("abc"), ElementsAre("a", "bc"));
}

TEST(Bpe, DropoutIsReproducibleAndUndone) {
  BpeSegmenter segmenter(codes);
  std::set<std::string> seen;
  for (uint64_t key = 0; key < 50; ++key) {
    const BpeDropout dropout{.rate = 0.5, .key = key};
    const std::string line = segmenter.segment_line("lower lower", dropout);
    EXPECT_EQ(line, segmenter.segment_line("lower lower", dropout));
    EXPECT_EQ(join_subwords(line), "lower lower");
    seen.insert(line);
  }
  EXPECT_GT(seen.size(), 5U);
  EXPECT_EQ(segmenter.segment_line("lower", {.rate = 1, .key = 3}), "l@@ o@@ w@@ e@@ r");
}

TEST(Bpe, JoinsSubwords) {
  EXPECT_EQ(join_subwords("lo@@ w er@@ s"), "low ers");
  EXPECT_EQ(join_subwords("cut@@"), "cut");
  EXPECT_EQ(join_subwords(""), "");
}

// Where Python's str.splitlines ends lines: each of these, and not the unit separator or a no-break space.
TEST(BpeLines, EndAsPythonEndsThem) {
  EXPECT_THAT(bpe_lines("a\rb\r\nc\n\r"), ElementsAre("a\r", "b\r\n", "c\n", "\r"));
  EXPECT_THAT(bpe_lines("a\vb\fc\x1c\x1d\x1e\n"), ElementsAre("a\v", "b\f", "c\x1c", "\x1d", "\x1e", "\n"));
  EXPECT_THAT(bpe_lines("é\u0085\u2028 x\u2029y"), ElementsAre("é\u0085", "\u2028", " x\u2029", "y"));
  EXPECT_THAT(bpe_lines("a\x1f\u00a0\tb"), ElementsAre("a\x1f\u00a0\tb"));
  EXPECT_TRUE(bpe_lines("").empty());
}

TEST(BpeLines, KeepTheirEnds) {
  BpeSegmenter segmenter(codes);
  EXPECT_EQ(segmenter.segment_line(" low \r\n"), " low \r\n");
  EXPECT_EQ(segmenter.segment_line("low\v"), "low@@ \v");
  WordCounts words;
  words.add_line("low\r");
  EXPECT_EQ(words.to_text(), "low 1\n");
}

TEST(BpeSegmenter, CodesThatReferToThemselvesEnd) {
  for (const BpeCodes& cyclic : {BpeCodes{{"x", "</w>"}, {"<", "/w>"}}, BpeCodes{{"x<", "/w>"}, {"<", "/w>"}},
                                 BpeCodes{{"", "x</w>"}, {"", "x"}}, BpeCodes{{"</w", ">"}, {"x", "</w>"}}}) {
    BpeSegmenter segmenter(cyclic, {"never"});
    EXPECT_EQ(segmenter.segment_line("yx"), "y@@ x");
  }
}

}  // namespace
}  // namespace normlab
