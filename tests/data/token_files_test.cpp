// Token files of nanoGPT: read as they are, split as they are, and refused when they cannot be token files.
#include "normlab/data/token_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/data/corpus.h"
#include "normlab/data/text_size.h"
#include "stand_in.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string ids(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += {static_cast<char>(value & 255), static_cast<char>(value >> 8)};
  return bytes;
}

class TokenFiles : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) { write_file_atomically(folder_ / name, content); }
  TemporaryFolder folder_;
  ScopedVariable xdg_{"XDG_CACHE_HOME", (folder_ / "cache").string()};
};

TEST_F(TokenFiles, OfAFolderHoldOutTheSecond) {
  put("train.bin", ids({5, 300, 65535, 0}));
  put("val.bin", ids({7, 8}));
  for (const int64_t in_memory : {int64_t{0}, int64_t{1} << 20}) {
    const Corpus corpus = load_corpus(folder_.path(), "char", {.in_memory = in_memory});
    EXPECT_THAT(corpus.tokens.all(), ElementsAre(5, 300, 65535, 0, 7, 8));
    EXPECT_EQ(corpus.tokenizer.vocab_size(), 65536);
    const Split split = split_of(corpus, 10, 9);
    EXPECT_EQ(split.held_out, (TokenRange{4, 6}));
    EXPECT_THAT(split.train, ElementsAre(TokenRange{0, 4}));
    std::vector<int64_t> inputs(3), targets(3);
    corpus.tokens.copy_window(2, inputs, targets);  // across the files
    EXPECT_THAT(targets, ElementsAre(0, 7, 8));
    EXPECT_EQ(size_of_targets(corpus.tokenizer, corpus.tokens, eval_windows({0, 6}, 2, 0)).bytes, 0);
  }
  const CorpusSize size = measure_corpus(folder_.path(), "char");
  EXPECT_EQ(size.tokens, 6);
  EXPECT_EQ(size.vocab_size, 65536);
}

TEST_F(TokenFiles, HaveTheVocabularyThatIsGiven) {
  put("my.bin", ids({1, 2, 3}));
  const Corpus alone = load_corpus(folder_ / "my.bin", "char");
  EXPECT_EQ(alone.tokenizer.vocab_size(), 4);
  EXPECT_EQ(alone.held_out, 0);
  const Corpus padded = load_corpus(folder_ / "my.bin", "char", {.vocab_size = 64});
  EXPECT_EQ(padded.tokenizer.vocab_size(), 64);
  EXPECT_EQ(Tokenizer::from_json(nlohmann::json::parse(padded.tokenizer.to_json().dump())), padded.tokenizer);
  EXPECT_EQ(padded.tokenizer.decode(padded.tokens.all()), " 1 2 3");
  EXPECT_THAT(padded.tokenizer.encode(" 3\n63 "), ElementsAre(3, 63));
  EXPECT_THAT([&] { padded.tokenizer.encode("3 cat"); }, ThrowsMessage<DataError>(HasSubstr("'cat'")));
  EXPECT_THAT([&] { padded.tokenizer.encode("64"); }, ThrowsMessage<DataError>(HasSubstr("0 to 63")));
  EXPECT_THAT([&] { load_corpus(folder_ / "my.bin", "char", {.vocab_size = 3}); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("the token 3"), HasSubstr("3 tokens"))));
  EXPECT_THAT([&] { load_corpus(folder_ / "my.bin", Tokenizer::make("char", "abc")); }, testing::Throws<DataError>());
  EXPECT_EQ(load_corpus(folder_ / "my.bin", "byte").tokens.size(), 6U);  // the bytes of any file
}

TEST_F(TokenFiles, AreRefusedWhenTheyAreNone) {
  const auto refused = [&](const fs::path& path, const char* message) {
    EXPECT_THAT([&] { load_corpus(path, "char"); }, ThrowsMessage<DataError>(HasSubstr(message)));
    EXPECT_THAT([&] { measure_corpus(path, "char"); }, ThrowsMessage<DataError>(HasSubstr(message)));
  };
  put("train.bin", "abc");
  refused(folder_.path(), "has 3 bytes, an odd number");
  put("train.bin", ids({1}));
  refused(folder_.path(), "val.bin] no such file");
  put("val.bin", "");
  refused(folder_.path(), "val.bin] is empty");
  fs::remove(folder_ / "val.bin");
  ASSERT_EQ(mkfifo((folder_ / "val.bin").c_str(), 0600), 0);
  refused(folder_.path(), "is not a regular file");
}

TEST_F(TokenFiles, ThatChangeInUseAreAnError) {
  put("my.bin", ids({1, 2, 3}));
  const Corpus corpus = load_corpus(folder_ / "my.bin", "char");
  const int file = ::open((folder_ / "my.bin").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(file, "\xff\xff", 2, 0), 2);
  EXPECT_THAT([&] { corpus.tokens.all(); }, ThrowsMessage<DataError>(HasSubstr("was changed while it was in use")));
  ASSERT_EQ(::ftruncate(file, 2), 0);
  ::close(file);
  EXPECT_THAT([&] { corpus.tokens.all(); }, ThrowsMessage<DataError>(HasSubstr("shortened")));
}

}  // namespace
}  // namespace normlab
