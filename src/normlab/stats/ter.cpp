// TER: a banded edit distance whose path says where the hypothesis is wrong, and the shifts tried there.
#include "normlab/stats/ter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace normlab {
namespace {

// Tercom's limits, and sacreBLEU's own on the number of shifts tried in a sentence.
constexpr int64_t max_shift_size = 10, max_shift_distance = 50, beam_width = 25, max_candidates = 1000;
constexpr int64_t infinite = std::numeric_limits<int64_t>::max() / 4;

enum class Edit : uint8_t { match, substitution, insertion, deletion, undefined };

struct EditCell {
  int64_t cost = infinite;
  Edit edit = Edit::undefined;
};

// Edit distances of prefixes of the hypothesis (rows) and the reference, of which only a band is ever filled.
class EditMatrix {
 public:
  EditMatrix(int64_t n_hypothesis, const WordIds& reference)
      : reference_(&reference), rows_(static_cast<size_t>(n_hypothesis) + 1) {
    const auto n_reference = static_cast<int64_t>(reference.size());
    const double ratio = n_hypothesis > 0 ? static_cast<double>(n_reference) / static_cast<double>(n_hypothesis) : 1;
    // Where lengths differ much, neighbouring rows of the usual width would not overlap.
    const int64_t width = static_cast<double>(beam_width) < ratio / 2
                              ? static_cast<int64_t>(std::ceil(ratio / 2 + static_cast<double>(beam_width)))
                              : beam_width;
    for (int64_t i = 0; i <= n_hypothesis; ++i) {
      Row& row = rows_[static_cast<size_t>(i)];
      const auto diagonal = static_cast<int64_t>(std::floor(static_cast<double>(i) * ratio));
      const bool whole = i == 0, last = i == n_hypothesis;
      row.first = whole ? 0 : std::max<int64_t>(0, diagonal - width);
      const int64_t end = whole || last ? n_reference + 1 : std::min(n_reference + 1, diagonal + width);
      row.cells.resize(static_cast<size_t>(std::max<int64_t>(0, end - row.first)));
    }
    for (int64_t j = 0; j <= n_reference; ++j) rows_[0].cells[static_cast<size_t>(j)] = {j, Edit::insertion};
  }

  // The distance of the hypothesis; its first `known` words are those of the previous call.
  int64_t distance(const WordIds& hypothesis, size_t known = 0) {
    for (size_t i = known + 1; i < rows_.size(); ++i) fill_row(i, hypothesis[i - 1]);
    return at(rows_.size() - 1, static_cast<int64_t>(reference_->size())).cost;
  }

  // The edits of the path through the matrix, from the first words on.
  std::vector<Edit> path() const {
    std::vector<Edit> edits;
    size_t i = rows_.size() - 1;
    auto j = static_cast<int64_t>(reference_->size());
    while (i > 0 || j > 0) {
      const Edit edit = at(i, j).edit;
      edits.push_back(edit);
      if (edit != Edit::insertion) --i;
      if (edit != Edit::deletion) --j;
    }
    std::ranges::reverse(edits);
    return edits;
  }

 private:
  struct Row {
    int64_t first = 0;
    std::vector<EditCell> cells;
  };

  EditCell at(size_t i, int64_t j) const {
    const int64_t offset = j - rows_[i].first;
    if (offset < 0 || offset >= static_cast<int64_t>(rows_[i].cells.size())) return {};
    return rows_[i].cells[static_cast<size_t>(offset)];
  }

  void fill_row(size_t i, int32_t word) {
    Row& row = rows_[i];
    for (size_t offset = 0; offset < row.cells.size(); ++offset) {
      const int64_t j = row.first + static_cast<int64_t>(offset);
      EditCell best;
      const auto offer = [&best](int64_t cost, Edit edit) {
        if (cost < best.cost) best = {cost, edit};
      };
      if (j > 0) {
        const bool match = word == (*reference_)[static_cast<size_t>(j - 1)];
        offer(at(i - 1, j - 1).cost + (match ? 0 : 1), match ? Edit::match : Edit::substitution);
      }
      // The order decides between paths of equal cost, and so which words count as wrong.
      offer(at(i - 1, j).cost + 1, Edit::deletion);
      if (offset > 0) offer(row.cells[offset - 1].cost + 1, Edit::insertion);
      row.cells[offset] = best;
    }
  }

  const WordIds* reference_;
  std::vector<Row> rows_;
};

// Which words a path leaves wrong, and the hypothesis position that each reference word is at (or after).
struct Alignment {
  std::vector<int64_t> position;
  std::vector<bool> reference_wrong, hypothesis_wrong;
};

Alignment align(const std::vector<Edit>& path) {
  Alignment out;
  int64_t at = -1;
  for (const Edit edit : path) {
    const bool wrong = edit != Edit::match;
    if (edit != Edit::insertion) {
      ++at;
      out.hypothesis_wrong.push_back(wrong);
    }
    if (edit != Edit::deletion) {
      out.position.push_back(at);
      out.reference_wrong.push_back(wrong);
    }
  }
  return out;
}

// Moves the words [start, start + length) to before `target`; within or just after the block, that many words on.
WordIds shifted(const WordIds& words, int64_t start, int64_t length, int64_t target) {
  WordIds out = words;
  const auto begin = out.begin() + start, end = begin + length;
  if (target < start) {
    std::rotate(out.begin() + target, begin, end);
  } else {
    const int64_t new_end = target > start + length ? target : target + length;
    std::rotate(begin, end, out.begin() + std::min(new_end, static_cast<int64_t>(out.size())));
  }
  return out;
}

bool any(const std::vector<bool>& flags, int64_t begin, int64_t length) {
  return std::find(flags.begin() + begin, flags.begin() + begin + length, true) != flags.begin() + begin + length;
}

class ShiftSearch {
 public:
  ShiftSearch(const WordIds& hypothesis, const WordIds& reference)
      : words_(hypothesis), reference_(reference), base_(size(hypothesis), reference), trial_(base_) {}

  int64_t edits() {
    int64_t shifts = 0;
    while (true) {
      const std::optional<Shift> best = best_shift();
      if (candidates_ >= max_candidates || !best || best->gain <= 0) break;
      words_ = shifted(words_, -best->minus_start, best->length, -best->minus_target);
      ++shifts;
    }
    return shifts + base_.distance(words_);
  }

 private:
  // In the order of preference: gain, longest, earliest, to the earliest place.
  struct Shift {
    int64_t gain, length, minus_start, minus_target;
    auto operator<=>(const Shift&) const = default;
  };

  static int64_t size(const WordIds& tokens) { return static_cast<int64_t>(tokens.size()); }

  std::optional<Shift> best_shift() {
    before_ = base_.distance(words_);
    trial_ = base_;
    trial_known_ = words_.size();
    alignment_ = align(base_.path());
    std::optional<Shift> best;
    for (int64_t start = 0; start < size(words_); ++start) {
      const int64_t first = std::max<int64_t>(0, start - max_shift_distance);
      const int64_t last = std::min(size(reference_) - 1, start + max_shift_distance);
      for (int64_t at = first; at <= last; ++at)
        if (!try_blocks(start, at, best)) return best;
    }
    return best;
  }

  // Every block that begins at `start` and stands in the reference at `at`; false when enough was tried.
  bool try_blocks(int64_t start, int64_t at, std::optional<Shift>& best) {
    for (int64_t length = 1; length <= max_shift_size; ++length) {
      if (start + length > size(words_) || at + length > size(reference_)) break;
      if (words_[static_cast<size_t>(start + length - 1)] != reference_[static_cast<size_t>(at + length - 1)]) break;
      const int64_t aligned = alignment_.position[static_cast<size_t>(at)];
      if (!any(alignment_.hypothesis_wrong, start, length) || !any(alignment_.reference_wrong, at, length) ||
          (start <= aligned && aligned < start + length))
        continue;
      try_targets(start, at, length, best);
      if (candidates_ >= max_candidates) return false;
    }
    return true;
  }

  void try_targets(int64_t start, int64_t at, int64_t length, std::optional<Shift>& best) {
    int64_t previous = -1;
    for (int64_t offset = -1; offset < length; ++offset) {
      const int64_t target = at + offset == -1 ? 0 : alignment_.position[static_cast<size_t>(at + offset)] + 1;
      if (target == previous) continue;
      previous = target;
      const WordIds words = shifted(words_, start, length, target);
      // The rows of the words before the first moved one stay, as far as the last trial left them.
      const auto first_moved = static_cast<size_t>(std::min(start, target));
      const Shift shift{before_ - trial_.distance(words, std::min(first_moved, trial_known_)), length, -start, -target};
      trial_known_ = first_moved;
      ++candidates_;
      if (!best || shift > *best) best = shift;
    }
  }

  WordIds words_;
  const WordIds& reference_;
  EditMatrix base_, trial_;
  size_t trial_known_ = 0;  // words of which the rows of trial_ are those of words_
  Alignment alignment_;
  int64_t before_ = 0, candidates_ = 0;
};

}  // namespace

int64_t translation_edits(const WordIds& hypothesis, const WordIds& reference) {
  if (reference.empty()) return static_cast<int64_t>(hypothesis.size());
  return ShiftSearch(hypothesis, reference).edits();
}

std::vector<double> ter_statistics(const Segment& segment) {
  int64_t fewest = std::numeric_limits<int64_t>::max(), lengths = 0;
  for (const WordIds& reference : segment.references) {
    fewest = std::min(fewest, translation_edits(segment.hypothesis, reference));
    lengths += static_cast<int64_t>(reference.size());
  }
  return {static_cast<double>(fewest), static_cast<double>(lengths) / static_cast<double>(segment.references.size())};
}

double ter(std::span<const double> sums) {
  if (sums[1] > 0) return 100 * (sums[0] / sums[1]);
  return sums[0] > 0 ? 100 : 0;
}

}  // namespace normlab
