// The text of a translator: files of a folder, as subwords, with what was left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/data/pair_vocabulary.h"

namespace normlab {

// Sources end with the mark of the end; targets have no marks.
struct EncodedPair {
  std::vector<int32_t> source, target;
};

struct TranslationFiles {
  std::string folder;            // or the name of one in $NORMLAB_DATA or the user's cache
  std::string source, target;    // languages: the ends of the files' names
  std::string train, dev, test;  // their beginnings; no `dev`: a block of the training text is held out
  int folds = 10, fold = 9;      // which
  PairVocabularySettings vocabulary;
  std::string sentencepiece = {};  // file of a model for both languages; empty: byte pair merges
  int64_t max_tokens = 0;          // of a side, marks included; longer pairs are left out of the training text
};

struct TranslationData {
  PairVocabulary vocabulary;
  std::vector<EncodedPair> train;
  std::vector<std::string> train_source, train_target;  // the lines of `train`, for BPE dropout
  ParallelText dev, test;                               // `test` is empty when there is none
  DroppedPairs dropped;                                 // from the training text
  int length_p975 = 0;  // 97.5th percentile of the lengths of all training sequences, marks included
  std::string sha256;   // of all files
};

// DataError for files that are missing, not aligned, or leave nothing to train on.
TranslationData load_translation_data(const TranslationFiles& files);

// The size of the vocabulary in bounded time: estimated from the first lines where the text is long.
struct VocabularySize {
  int size = 0;
  bool estimated = false;
};
VocabularySize measure_vocabulary(const TranslationFiles& files);

// The target side of the test text; empty when there is none.
std::vector<std::string> load_test_reference(const TranslationFiles& files);

// The pair as the model reads it.
EncodedPair encode_pair(PairVocabulary& vocabulary, std::string_view source, std::string_view target,
                        const BpeDropout& dropout = {});

}  // namespace normlab
