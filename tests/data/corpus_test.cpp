// Corpus: what is read, what is refused and how it is said; Tiny Shakespeare as nanoGPT prepares it.
#include "normlab/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/data/dataset.h"
#include "normlab/data/folds.h"
#include "normlab/data/text_size.h"
#include "sandbox.h"

namespace normlab {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class CorpusTest : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) {
    const auto path = folder_ / "text.txt";
    write_file_atomically(path, content);
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(CorpusTest, ReadsCharactersAndBytes) {
  const auto path = file("a\xC3\xA9 a");
  const Corpus characters = load_corpus(path, "char");
  EXPECT_THAT(characters.tokens.all(), ElementsAre(1, 2, 0, 1));
  EXPECT_EQ(characters.tokenizer.vocab_size(), 3);
  const Corpus bytes = load_corpus(path, "byte");
  EXPECT_THAT(bytes.tokens.all(), ElementsAre(0x61, 0xC3, 0xA9, 0x20, 0x61));
}

// One byte per character, then three: what is evaluated counts, not the file.
TEST_F(CorpusTest, ALongTextIsMeasuredFromItsBeginning) {
  std::string text = "x";  // so that the beginning ends within a character
  while (text.size() < (20U << 20)) text += "caf\xC3\xA9\n";
  const auto path = file(text);
  std::filesystem::resize_file(path, 1U << 30);  // a hole, which would be refused if it was read
  const CorpusSize characters = measure_corpus(path, "char"), bytes = measure_corpus(path, "byte");
  EXPECT_TRUE(characters.estimated);
  EXPECT_EQ(characters.vocab_size, 6);
  EXPECT_NEAR(static_cast<double>(characters.tokens), (1U << 30) * 5.0 / 6.0, 1000.0);
  EXPECT_NEAR(static_cast<double>(bytes.tokens), 1U << 30, 2.0);  // a rounded quotient
  EXPECT_EQ(bytes.vocab_size, 256);
  EXPECT_THROW(load_corpus(file("a\0b"s), "char"), DataError);
}

TEST_F(CorpusTest, AShortTextIsMeasuredExactly) {
  const CorpusSize size = measure_corpus(file("a\xC3\xA9 a"), "char");
  EXPECT_FALSE(size.estimated);
  EXPECT_EQ(size.tokens, 4);
  EXPECT_EQ(size.vocab_size, 3);
  EXPECT_THROW(measure_corpus(file("a\0b"s), "char"), DataError);
  EXPECT_THROW(measure_corpus(file(""), "byte"), DataError);
}

TEST_F(CorpusTest, SizeIsThatOfTheTargets) {
  const auto path = file("abcdefgh\xE1\xBB\x87\xE1\xBB\x87\xE1\xBB\x87\xE1\xBB\x87");
  const Corpus characters = load_corpus(path, "char");
  const std::vector<EvalWindow> first = {{0, 7}}, second = {{8, 3}}, both = {{2, 1}, {9, 2}};
  EXPECT_EQ(size_of_targets(characters.tokenizer, characters.tokens, first).bytes, 7);
  const TextSize size = size_of_targets(characters.tokenizer, characters.tokens, second);
  EXPECT_EQ(size.tokens, 3);
  EXPECT_EQ(size.bytes, 9);
  EXPECT_DOUBLE_EQ(size.characters, 3);
  EXPECT_DOUBLE_EQ(size.bits_per_byte(std::log(2.0)), 1.0 / 3);
  EXPECT_DOUBLE_EQ(size.bits_per_character(std::log(2.0)), 1);
  EXPECT_EQ(size_of_targets(characters.tokenizer, characters.tokens, both).bytes, 7);  // d, then two of three bytes
}

TEST_F(CorpusTest, ByteTokensAreSharesOfCharacters) {
  const Corpus bytes = load_corpus(file("abcdefgh\xE1\xBB\x87\xE1\xBB\x87\xC3"), "byte");
  const auto size = [&](EvalWindow window) {
    return size_of_targets(bytes.tokenizer, bytes.tokens, std::vector{window});
  };
  EXPECT_EQ(size({7, 6}).bytes, 6);
  EXPECT_DOUBLE_EQ(size({7, 6}).characters, 2);
  EXPECT_DOUBLE_EQ(size({7, 6}).bits_per_character(std::log(2.0)), 3);
  EXPECT_DOUBLE_EQ(size({0, 7}).characters, 7);
  EXPECT_DOUBLE_EQ(size({8, 1}).characters, 1.0 / 3);  // within a character: never 0
  EXPECT_DOUBLE_EQ(size({13, 1}).characters, 1);       // cut off at the end of the file
}

TEST_F(CorpusTest, LeavesTheTextAsItStands) {
  const std::string text = "\xEF\xBB\xBFline\r\nline\n\n";
  const Corpus corpus = load_corpus(file(text), "char");
  EXPECT_EQ(corpus.tokenizer.decode(corpus.tokens.all()), text);
}

TEST_F(CorpusTest, UsesTheVocabularyOfACheckpoint) {
  const Tokenizer tokenizer = Tokenizer::make("char", "abc");
  const Corpus corpus = load_corpus(file("cab"), tokenizer);
  EXPECT_EQ(corpus.tokenizer, tokenizer);
  EXPECT_THAT(corpus.tokens.all(), ElementsAre(2, 0, 1));
  EXPECT_THAT(
      [&] { load_corpus(file("cabd"), tokenizer); },
      ThrowsMessage<DataError>(AllOf(HasSubstr("text.txt]"), HasSubstr("'d' (U+0064) at character 3 (byte 3)"))));
  EXPECT_THAT([&] { load_corpus(file("ab\0"s), tokenizer); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("NUL at byte 2"), HasSubstr("the text it was trained on"))));
}

TEST_F(CorpusTest, RefusesWhatIsNotText) {
  EXPECT_THAT([&] { load_corpus(file("ab\0c"s), "char"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("NUL at byte 2"), HasSubstr("data.tokenizer=byte"))));
  EXPECT_THAT([&] { load_corpus(file("ab\xC3\xA9\xE9 "), "char"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("UTF-8 at byte 4"), HasSubstr("data.tokenizer=byte"))));
  EXPECT_EQ(load_corpus(file("ab\0\xE9"s), "byte").tokens.size(), 4U);
}

TEST_F(CorpusTest, RefusesWhatIsNoFile) {
  for (const char* kind : {"char", "byte"}) {
    EXPECT_THAT([&] { load_corpus(folder_ / "missing.txt", kind); },
                ThrowsMessage<DataError>(HasSubstr("missing.txt]")));
    EXPECT_THAT([&] { load_corpus(folder_.path(), kind); }, ThrowsMessage<DataError>(HasSubstr("is a folder")));
    EXPECT_THAT([&] { load_corpus(file(""), kind); }, ThrowsMessage<DataError>(HasSubstr("is empty")));
    EXPECT_THAT([&] { load_corpus("/dev/zero", kind); }, ThrowsMessage<DataError>(HasSubstr("not a regular file")));
  }
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT([&] { load_corpus(pipe, "char"); }, ThrowsMessage<DataError>(HasSubstr("not a regular file")));
  EXPECT_THROW(load_corpus(file("abc"), "word"), UsageError);
}

TEST(TinyShakespeare, IsAsNanoGptPreparesIt) {
  const auto path = locate_dataset("tinyshakespeare");
  if (!path) GTEST_SKIP() << "Tiny Shakespeare is neither in NORMLAB_DATA nor in the user's cache";
  const Corpus corpus = load_corpus(*path, "char");
  EXPECT_EQ(corpus.tokens.size(), 1115394U);
  EXPECT_EQ(corpus.tokenizer.vocab_size(), 65);
  EXPECT_EQ(size_of_targets(corpus.tokenizer, corpus.tokens, std::vector{EvalWindow{0, 1000}}).bytes, 1000);
  const std::string vocabulary = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  EXPECT_EQ(corpus.tokenizer, Tokenizer::make("char", vocabulary));
  // "First Citizen", and how nanoGPT's validation part begins: "?\n\nGREMIO:".
  const std::vector<int32_t> tokens = corpus.tokens.all();
  EXPECT_EQ(corpus.tokenizer.decode(std::span(tokens).first(13)), "First Citizen");
  const TokenRange held_out = make_split(1115394, 10, 9).held_out;
  EXPECT_EQ(corpus.tokenizer.decode(std::span(tokens).subspan(static_cast<size_t>(held_out.begin), 10)),
            "?\n\nGREMIO:");
}

}  // namespace
}  // namespace normlab
