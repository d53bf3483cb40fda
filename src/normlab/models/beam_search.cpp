#include "normlab/models/beam_search.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "normlab/kernels/cross_entropy.h"

namespace normlab {
namespace {

using torch::Tensor;

struct Row {
  Hypothesis hypothesis;
  double log_prob = 0.0;
  bool finished = false;
};

// One way to go on: a row and its next symbol.
struct Candidate {
  size_t row = 0;
  int64_t place = 0;  // of the symbol in the output vocabulary
  double log_prob = 0.0, score = 0.0;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.row != b.row ? a.row < b.row : a.place < b.place;
}

// The places of the `count` largest logits, the largest first; of equal ones the first.
std::vector<int64_t> largest(const float* logits, int64_t n, size_t count, int64_t forbidden) {
  std::vector<int64_t> best;
  for (int64_t i = 0; i < n; ++i) {
    if (best.size() == count && !(logits[i] > logits[best.back()])) continue;
    if (i == forbidden) continue;
    auto at = best.end();
    while (at != best.begin() && logits[i] > logits[*(at - 1)]) --at;
    best.insert(at, i);
    if (best.size() > count) best.pop_back();
  }
  return best;
}

// Hypotheses of all sentences that are not done, `rows_each` rows per sentence.
class Search {
 public:
  Search(const EncoderDecoder& model, const BeamTask& task, const BeamOptions& options)
      : model_(model),
        task_(task),
        options_(options),
        end_place_(task.outputs.place_v[task.marks.end].item<int64_t>()),
        tables_(model.decode_tables(task.outputs, task.target_language)),
        ids_(task.outputs.ids_n.contiguous()),
        beam_(static_cast<size_t>(std::min<int64_t>(options.beam, ids_.numel() - 1))),
        beams_(model.encode(task.source, Pass{}), model.decoder_layers(), tables_.plan),
        results_(task.limits.size()) {
    for (size_t sentence = 0; sentence < task.limits.size(); ++sentence) sentences_.push_back(sentence);
    rows_.resize(sentences_.size());
  }

  std::vector<std::vector<Hypothesis>> run() {
    for (int64_t length = 0; !sentences_.empty(); ++length) {
      if (options_.stop()) return {};
      step(length);
      take_finished(length + 1);
    }
    return std::move(results_);
  }

 private:
  Tensor last_symbols() const {
    const Tensor tokens = torch::empty({static_cast<int64_t>(rows_.size())}, torch::kInt64);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto& symbols = rows_[i].hypothesis.symbols;
      tokens.data_ptr<int64_t>()[i] = symbols.empty() ? task_.marks.begin : symbols.back();
    }
    return tokens;
  }

  // Goes on with the best `beam` candidates of each sentence; `length` symbols are there already.
  void step(int64_t length) {
    const Tensor logits = model_.step(last_symbols(), tables_, beams_).to(torch::kCPU, torch::kFloat32).contiguous();
    const std::vector<std::vector<Candidate>> candidates = candidates_of_rows(logits, length);
    const size_t each = rows_.size() / sentences_.size();
    std::vector<Row> next;
    parents_.clear();
    for (size_t sentence = 0; sentence < sentences_.size(); ++sentence) {
      std::vector<Candidate> all;
      for (size_t row = sentence * each; row < (sentence + 1) * each; ++row)
        all.insert(all.end(), candidates[row].begin(), candidates[row].end());
      std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(beam_), all.end(), better);
      for (size_t i = 0; i < beam_; ++i) next.push_back(extended(all[i]));
    }
    rows_ = std::move(next);
  }

  Row extended(const Candidate& way) {
    Row row = rows_[way.row];
    parents_.push_back(static_cast<int64_t>(way.row));
    if (row.finished) return row;
    row.log_prob = way.log_prob;
    row.finished = way.place == end_place_;
    row.hypothesis.score = way.score;
    row.hypothesis.symbols.push_back(static_cast<int32_t>(ids_.const_data_ptr<int64_t>()[way.place]));
    return row;
  }

  std::vector<std::vector<Candidate>> candidates_of_rows(const Tensor& logits, int64_t length) const {
    const int64_t n = logits.size(1);
    const double penalty = std::pow((6.0 + static_cast<double>(length)) / 6.0, options_.length_penalty);
    std::vector<std::vector<Candidate>> candidates(rows_.size());
    at::parallel_for(0, logits.size(0), /*grain_size=*/8, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        const Row& row = rows_[i];
        if (row.finished) {
          candidates[i].push_back({i, end_place_, row.log_prob, row.hypothesis.score});
          continue;
        }
        float* z = logits.mutable_data_ptr<float>() + static_cast<int64_t>(i) * n;
        const std::vector<int64_t> best = largest(z, n, beam_, length == 0 ? end_place_ : -1);
        float minus_log_prob = 0.0F;  // of the best
        cross_entropy({.vocab = static_cast<size_t>(n), .gradient = false}, z, best.data(), &minus_log_prob, {0, 1});
        for (const int64_t place : best) {
          const double log_prob =
              row.log_prob - minus_log_prob + (static_cast<double>(z[place]) - static_cast<double>(z[best[0]]));
          candidates[i].push_back({i, place, log_prob, log_prob / penalty});
        }
      }
    });
    return candidates;
  }

  // Sentences that are done leave; the others' rows follow their parents.
  void take_finished(int64_t length) {
    std::vector<size_t> sentences;
    std::vector<Row> rows;
    std::vector<int64_t> parents;
    for (size_t i = 0; i < sentences_.size(); ++i) {
      const auto first = static_cast<int64_t>(i * beam_), last = first + static_cast<int64_t>(beam_);
      const bool finished =
          std::all_of(rows_.begin() + first, rows_.begin() + last, [](const Row& r) { return r.finished; });
      if (finished || length >= task_.limits[sentences_[i]]) {
        for (int64_t row = first; row < last; ++row)
          results_[sentences_[i]].push_back(std::move(rows_[static_cast<size_t>(row)].hypothesis));
        continue;
      }
      sentences.push_back(sentences_[i]);
      for (int64_t row = first; row < last; ++row) {
        rows.push_back(std::move(rows_[static_cast<size_t>(row)]));
        parents.push_back(parents_[static_cast<size_t>(row)]);
      }
    }
    sentences_ = std::move(sentences);
    rows_ = std::move(rows);
    if (!sentences_.empty()) beams_.select(parents);
  }

  const EncoderDecoder& model_;
  const BeamTask& task_;
  BeamOptions options_;
  int64_t end_place_;
  DecodeTables tables_;
  Tensor ids_;
  size_t beam_;
  BeamState beams_;
  std::vector<size_t> sentences_;  // not done yet
  std::vector<Row> rows_;
  std::vector<int64_t> parents_;  // of rows_, among the rows of the last step
  std::vector<std::vector<Hypothesis>> results_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(const EncoderDecoder& model, const BeamTask& task,
                                                 const BeamOptions& options) {
  const torch::NoGradGuard no_grad;
  model.pack_weights();
  return Search(model, task, options).run();
}

}  // namespace normlab
