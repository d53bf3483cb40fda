// Byte pair encoding: a file of codes, a vocabulary file and a text; segmentation is undone exactly.
#include "normlab/data/bpe.h"

#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/data/bpe_learn.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

// Without the joiner in it, what is segmented is joined again to the same words.
void segment_and_join(BpeSegmenter& segmenter, const std::string& text) {
  for (const std::string_view line : bpe_lines(text)) {
    const std::string once = join(split(segmenter.segment_line(line), ' '), " ");
    const std::string dropped = segmenter.segment_line(line, {.rate = 0.5, .key = 7});
    if (line.find('@') != std::string_view::npos || first_invalid_utf8(line)) continue;
    require(join_subwords(once) == join_subwords(dropped), "dropout changes the parts, not the words");
  }
}

}  // namespace

void fuzz_bpe(const uint8_t* bytes, size_t size) {
  const auto parts = parts_of(bytes, size, 3);
  const MemoryFile codes_file("#version: 0.2\n" + parts[0]), vocabulary_file(parts[1]);
  BpeCodes codes;
  BpeVocabulary vocabulary;
  accepts([&] { codes = read_bpe_codes(codes_file.path()); });
  accepts([&] { vocabulary = read_bpe_vocabulary(vocabulary_file.path(), 2); });

  BpeSegmenter plain(codes), filtered(codes, vocabulary);
  segment_and_join(plain, parts[2]);
  segment_and_join(filtered, parts[2]);

  WordCounts counts;
  for (const std::string_view line : bpe_lines(parts[2])) counts.add_line(line);
  const MemoryFile learned(to_text(learn_bpe(counts, {.operations = 20})));
  accepts([&] { read_bpe_codes(learned.path()); });
}

}  // namespace normlab
