#include "normlab/data/translation_data.h"

#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

class TranslationDataTest : public ::testing::Test {
 protected:
  const std::filesystem::path& path() const { return folder_.path(); }
  void write(const std::string& name, int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += concat("word", i % 7, " and word", i % 3, "\n");
    write_file_atomically(path() / name, text);
  }
  TranslationFiles files() {
    return {.folder = path().string(),
            .source = "a",
            .target = "b",
            .train = "train",
            .dev = "dev",
            .test = "",
            .vocabulary = {.operations = 10}};
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(TranslationDataTest, ReadsTheFilesOfAFolder) {
  for (const char* name : {"train.a", "train.b"}) write(name, 40);
  for (const char* name : {"dev.a", "dev.b"}) write(name, 5);
  const TranslationData data = load_translation_data(files());
  EXPECT_EQ(data.train.size(), 40U);
  EXPECT_EQ(data.dev.source.size(), 5U);
  EXPECT_EQ(data.dropped.total(), 0);
  EXPECT_EQ(data.train.front().source.back(), PairVocabulary::end);
  int at_most = 0;  // sequences of so many subwords or fewer: 97.5 % of them, and no fewer for a shorter length
  int shorter = 0;
  for (const EncodedPair& pair : data.train)
    for (const size_t length : {pair.source.size(), pair.target.size() + 1}) {
      at_most += length <= static_cast<size_t>(data.length_p975);
      shorter += length < static_cast<size_t>(data.length_p975);
    }
  EXPECT_GE(at_most, 78);
  EXPECT_LT(shorter, 78);
}

TEST_F(TranslationDataTest, TheVocabularyOfALongTextIsMeasuredFromItsFirstLines) {
  for (const char* name : {"dev.a", "dev.b"}) write(name, 2);
  for (const char* name : {"train.a", "train.b"}) write(name, 20);
  EXPECT_FALSE(measure_vocabulary(files()).estimated);
  EXPECT_EQ(measure_vocabulary(files()).size, load_translation_data(files()).vocabulary.size());
  for (const char* name : {"train.a", "train.b"}) write(name, 200000);  // some 3 MB
  const VocabularySize measured = measure_vocabulary(files());
  EXPECT_TRUE(measured.estimated);
  EXPECT_EQ(measured.size, load_translation_data(files()).vocabulary.size());  // the lines repeat
}

TEST_F(TranslationDataTest, HoldsOutAFoldWithoutDevelopmentFiles) {
  for (const char* name : {"train.a", "train.b"}) write(name, 40);
  TranslationFiles wanted = files();
  wanted.dev = "";
  wanted.folds = 4, wanted.fold = 1;
  const TranslationData data = load_translation_data(wanted);
  EXPECT_EQ(data.train.size(), 30U);
  EXPECT_EQ(data.dev.source.size(), 10U);
}

TEST_F(TranslationDataTest, DropsWhatIsTooLongAndSaysSo) {
  for (const char* name : {"train.a", "train.b", "dev.a", "dev.b"}) write(name, 20);
  write_file_atomically(path() / "train.a",
                        read_file(path() / "train.a") + "x x x x x x x x x x x x x x x x x x x\n\n");
  write_file_atomically(path() / "train.b", read_file(path() / "train.b") + "x\nx\n");
  TranslationFiles wanted = files();
  wanted.max_tokens = 18;
  const TranslationData data = load_translation_data(wanted);
  EXPECT_EQ(data.train.size(), 20U);
  EXPECT_EQ(data.dropped.total(), 2);
  EXPECT_NE(data.dropped.describe().find("too long"), std::string::npos);
}

TEST_F(TranslationDataTest, RefusesWhatIsMissing) {
  EXPECT_THROW(load_translation_data(files()), DataError);
  TranslationFiles nowhere = files();
  nowhere.folder = "no-such-folder-anywhere";
  EXPECT_THROW(load_translation_data(nowhere), DataError);
}

}  // namespace
}  // namespace normlab
