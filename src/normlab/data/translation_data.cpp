// The text of a translator: where its files are, the held-out part, the vocabulary, the pairs that fit.
#include "normlab/data/translation_data.h"

#include <algorithm>
#include <cstdlib>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/data/folds.h"
#include "normlab/data/text_lines.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

fs::path find_folder(const std::string& name) {
  std::vector<fs::path> places = {name};
  if (const char* given = std::getenv("NORMLAB_DATA"); given && *given) places.push_back(fs::path(given) / name);
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    places.push_back(fs::path(cache) / "normlab" / "data" / name);
  else if (const char* home = std::getenv("HOME"); home && *home)
    places.push_back(fs::path(home) / ".cache" / "normlab" / "data" / name);
  for (const fs::path& place : places)
    if (fs::is_directory(place)) return place;
  const char* origin = name.starts_with("ted-")
                           ? " It is from the TED talks of Qi et al. 2018 (github.com/neulab/word-embeddings-for-nmt), "
                             "which may not be passed on with normlab; docs/translation.md has free text as well."
                           : "";
  throw DataError(name,
                  concat("there is no such folder, neither here nor in $NORMLAB_DATA or the cache. Name the folder of "
                         "the aligned files with --data, or set NORMLAB_DATA to the folder that holds it.",
                         origin));
}

// FOLDER/train.gl or FOLDER/train.gl.gz
fs::path find_side(const fs::path& folder, const std::string& part, const std::string& language) {
  const fs::path plain = folder / (part + "." + language), packed = plain.string() + ".gz";
  if (fs::exists(plain)) return plain;
  if (fs::exists(packed)) return packed;
  throw DataError(plain.string(), "there is no such file, nor one with .gz after it.");
}

struct LoadedPart {
  ParallelText text;
  std::string sums;
};

LoadedPart load_part(const fs::path& folder, const std::string& part, const TranslationFiles& files) {
  const fs::path source = find_side(folder, part, files.source), target = find_side(folder, part, files.target);
  return {load_parallel_text(source, target), sha256_file(source) + sha256_file(target)};
}

ParallelText lines(const ParallelText& text, const TokenRange& part) {
  const auto from = [&](const std::vector<std::string>& side) {
    return std::vector<std::string>(side.begin() + part.begin, side.begin() + part.end);
  };
  return {from(text.source), from(text.target)};
}

void append(ParallelText& to, const ParallelText& more) {
  to.source.insert(to.source.end(), more.source.begin(), more.source.end());
  to.target.insert(to.target.end(), more.target.begin(), more.target.end());
}

PairVocabularySettings vocabulary_settings(const TranslationFiles& files) {
  PairVocabularySettings settings = files.vocabulary;
  if (!files.sentencepiece.empty()) settings.pieces.emplace(read_file(files.sentencepiece), files.sentencepiece);
  return settings;
}

// Pairs whose subwords do not fit the model are dropped like those that are empty.
void encode_training_text(const ParallelText& text, int64_t max_tokens, TranslationData& data) {
  DroppedPairs::Row& too_long = data.dropped.rows[static_cast<size_t>(DropReason::too_long)];
  data.dropped.max_tokens = max_tokens;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < text.source.size(); ++i) {
    EncodedPair pair = encode_pair(data.vocabulary, text.source[i], text.target[i]);
    const auto source = static_cast<int64_t>(pair.source.size()), target = static_cast<int64_t>(pair.target.size()) + 1;
    if (max_tokens > 0 && std::max(source, target) > max_tokens) {
      if (too_long.pairs++ == 0) too_long.first_line = static_cast<int64_t>(i) + 1;
      continue;
    }
    lengths.push_back(source), lengths.push_back(target);
    data.train.push_back(std::move(pair));
    data.train_source.push_back(text.source[i]);
    data.train_target.push_back(text.target[i]);
  }
  if (lengths.empty()) return;
  std::ranges::sort(lengths);
  data.length_p975 = static_cast<int>(lengths[(lengths.size() - 1) * 975 / 1000]);
}

}  // namespace

EncodedPair encode_pair(PairVocabulary& vocabulary, std::string_view source, std::string_view target,
                        const BpeDropout& dropout) {
  EncodedPair pair{vocabulary.encode(Side::source, source, dropout),
                   vocabulary.encode(Side::target, target, {dropout.rate, stream_key(dropout.key, 1)})};
  pair.source.push_back(PairVocabulary::end);
  return pair;
}

std::vector<std::string> load_test_reference(const TranslationFiles& files) {
  if (files.test.empty()) return {};
  return load_part(find_folder(files.folder), files.test, files).text.target;
}

VocabularySize measure_vocabulary(const TranslationFiles& files) {
  constexpr size_t beginning = 2 << 20;  // bytes of each side
  const fs::path folder = find_folder(files.folder);
  const fs::path sides[] = {find_side(folder, files.train, files.source), find_side(folder, files.train, files.target)};
  if (fs::file_size(sides[0]) < beginning && fs::file_size(sides[1]) < beginning)
    return {.size = load_translation_data(files).vocabulary.size()};
  ParallelText text{read_first_lines(sides[0], beginning), read_first_lines(sides[1], beginning)};
  const size_t pairs = std::min(text.source.size(), text.target.size());
  text.source.resize(pairs), text.target.resize(pairs);
  drop_unusable_pairs(text, /*max_tokens=*/0);
  return {.size = PairVocabulary::learn(text, vocabulary_settings(files)).size(), .estimated = true};
}

TranslationData load_translation_data(const TranslationFiles& files) {
  const fs::path folder = find_folder(files.folder);
  LoadedPart train = load_part(folder, files.train, files);
  std::string sums = train.sums;
  ParallelText dev, test;
  if (!files.dev.empty()) {
    LoadedPart part = load_part(folder, files.dev, files);
    dev = std::move(part.text);
    sums += part.sums;
  } else {
    const auto pairs = static_cast<int64_t>(train.text.source.size());
    if (pairs < files.folds)
      throw DataError(folder.string(),
                      concat("got ", pairs, " pairs, expected at least data.folds = ", files.folds, "."));
    const Split split = make_split(pairs, files.folds, files.fold);
    dev = lines(train.text, split.held_out);
    ParallelText rest;
    for (const TokenRange& segment : split.train) append(rest, lines(train.text, segment));
    train.text = std::move(rest);
  }
  if (!files.test.empty()) {
    LoadedPart part = load_part(folder, files.test, files);
    test = std::move(part.text);
    sums += part.sums;
  }
  const DroppedPairs dropped = drop_unusable_pairs(train.text, /*max_tokens=*/0);
  TranslationData data{.vocabulary = PairVocabulary::learn(train.text, vocabulary_settings(files)),
                       .train = {},
                       .train_source = {},
                       .train_target = {},
                       .dev = std::move(dev),
                       .test = std::move(test),
                       .dropped = dropped,
                       .sha256 = sha256_hex(sums)};
  encode_training_text(train.text, files.max_tokens, data);
  if (data.train.empty())
    throw DataError(folder.string(), concat("no pair is left to train on: ", data.dropped.describe(), "."));
  return data;
}

}  // namespace normlab
