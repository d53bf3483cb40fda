#include "normlab/train/bleu_of_text.h"

#include "normlab/data/score_tokenizer.h"
#include "normlab/stats/bleu.h"

namespace normlab {

double bleu_of_text(const std::vector<std::string>& output, const std::vector<std::string>& reference,
                    BleuWords words) {
  const auto split_line = score_tokenizers[static_cast<size_t>(words)].split;
  TokenIds ids;
  std::vector<Segment> segments(output.size());
  for (size_t i = 0; i < output.size(); ++i) {
    segments[i].hypothesis = ids(split_line(output[i]));
    segments[i].references = {ids(split_line(reference[i]))};
  }
  return corpus_bleu(segments).score;
}

}  // namespace normlab
