// Corpus: what is read, what is refused and how it is said; Tiny Shakespeare as nanoGPT prepares it.
#include "data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "../sandbox.h"
#include "base/error.h"
#include "base/file.h"
#include "data/dataset.h"
#include "data/folds.h"

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
  EXPECT_THAT(characters.tokens, ElementsAre(1, 2, 0, 1));
  EXPECT_EQ(characters.tokenizer.vocab_size(), 3);
  EXPECT_DOUBLE_EQ(characters.bytes_per_token, 1.25);
  EXPECT_DOUBLE_EQ(characters.characters_per_token, 1);
  const Corpus bytes = load_corpus(path, "byte");
  EXPECT_THAT(bytes.tokens, ElementsAre(0x61, 0xC3, 0xA9, 0x20, 0x61));
  EXPECT_DOUBLE_EQ(bytes.bytes_per_token, 1);
  EXPECT_DOUBLE_EQ(bytes.characters_per_token, 0.8);
}

TEST_F(CorpusTest, LeavesTheTextAsItStands) {
  const std::string text = "\xEF\xBB\xBFline\r\nline\n\n";
  const Corpus corpus = load_corpus(file(text), "char");
  EXPECT_EQ(corpus.tokenizer.decode(corpus.tokens), text);
}

TEST_F(CorpusTest, UsesTheVocabularyOfACheckpoint) {
  const Tokenizer tokenizer = Tokenizer::make("char", "abc");
  const Corpus corpus = load_corpus(file("cab"), tokenizer);
  EXPECT_EQ(corpus.tokenizer, tokenizer);
  EXPECT_THAT(corpus.tokens, ElementsAre(2, 0, 1));
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
  EXPECT_DOUBLE_EQ(corpus.bytes_per_token, 1);
  const std::string vocabulary = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  EXPECT_EQ(corpus.tokenizer, Tokenizer::make("char", vocabulary));
  // "First Citizen", and how nanoGPT's validation part begins: "?\n\nGREMIO:".
  EXPECT_EQ(corpus.tokenizer.decode(std::span(corpus.tokens).first(13)), "First Citizen");
  const TokenRange held_out = make_split(1115394, 10, 9).held_out;
  EXPECT_EQ(corpus.tokenizer.decode(std::span(corpus.tokens).subspan(static_cast<size_t>(held_out.begin), 10)),
            "?\n\nGREMIO:");
}

}  // namespace
}  // namespace normlab
