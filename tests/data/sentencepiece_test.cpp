#include "normlab/data/sentencepiece.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/data/pair_vocabulary.h"
#include "sandbox.h"

namespace normlab {
namespace {

ParallelText text() {
  ParallelText lines;
  for (int i = 0; i < 20; ++i) {
    for (const char* line : {"o gato come pan", "os gatos comen", "o can e o gato"}) lines.source.push_back(line);
    for (const char* line : {"the cat eats bread", "cats eat", "the dog and the cat"}) lines.target.push_back(line);
  }
  return lines;
}

std::string trained_model(const TemporaryFolder& folder) {
  std::string corpus;
  for (const std::string& line : text().source) corpus += line + "\n";
  for (const std::string& line : text().target) corpus += line + "\n";
  const auto file = folder / "corpus.txt", model = folder / "joint";
  write_file_atomically(file, corpus);
  const auto status =
      sentencepiece::SentencePieceTrainer::Train("--input=" + file.string() + " --model_prefix=" + model.string() +
                                                 " --vocab_size=40 --hard_vocab_limit=false --minloglevel=3");
  EXPECT_TRUE(status.ok()) << status.ToString();
  return read_file(model.string() + ".model");
}

TEST(SentencePieces, SegmentsAsTheLibraryDoes) {
  const TemporaryFolder folder;
  const std::string model = trained_model(folder);
  const SentencePieces pieces(model, "joint.model");
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.LoadFromSerializedProto(model).ok());
  for (const std::string line : {"o gato come", "cats and dogs", "", "   ", "a word never seen: 漢"}) {
    std::vector<std::string> want;
    ASSERT_TRUE(library.Encode(line, &want).ok());
    EXPECT_EQ(pieces.segment(line), want) << line;
  }
  EXPECT_EQ(pieces.join(pieces.segment("the cat eats bread")), "the cat eats bread");
}

TEST(SentencePieces, RefusesWhatIsNoModel) {
  for (const char* model : {"", "not a model"}) {
    try {
      const SentencePieces pieces(model, "some.model");
      FAIL() << "took '" << model << "'";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("some.model"), std::string::npos) << error.what();
    }
  }
}

TEST(SentencePieces, AreTheSubwordsOfAPair) {
  const TemporaryFolder folder;
  const SentencePieces pieces(trained_model(folder), "joint.model");
  PairVocabulary vocabulary = PairVocabulary::learn(text(), {.pieces = pieces});
  for (const std::string& line : text().source)
    EXPECT_EQ(vocabulary.decode(vocabulary.encode(Side::source, line)), line);
  EXPECT_EQ(vocabulary.encode(Side::target, "the cat").size(), pieces.segment("the cat").size());
  // Only what the target's own text has may be put out.
  const std::vector<bool> outputs = vocabulary.outputs();
  EXPECT_LT(std::count(outputs.begin(), outputs.end(), true), vocabulary.size() - 2);
  PairVocabulary copy = PairVocabulary::from_json(vocabulary.to_json());
  EXPECT_EQ(copy, vocabulary);
  EXPECT_EQ(copy.encode(Side::target, "the dog eats"), vocabulary.encode(Side::target, "the dog eats"));
  EXPECT_NE(PairVocabulary::learn(text(), {.operations = 20}), vocabulary);
}

}  // namespace
}  // namespace normlab
