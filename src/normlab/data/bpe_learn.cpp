// Learning of byte pair encoding. Pairs of symbols have a row each; a merge changes only the rows of its neighbours.
//
// subword-nmt keeps frequent pairs in a small table and looks into the full one only when their counts fall below a
// threshold. A pair that leaves the small table and gains occurrences later is then counted anew, so that its merges
// are not always those of exact counts. The same bookkeeping is kept here: the codes must be the same.
#include "normlab/data/bpe_learn.h"

#include <algorithm>
#include <optional>

#include "normlab/data/unicode.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

using Symbols = std::vector<int32_t>;

struct LearnedWord {
  Symbols symbols = {};
  int64_t count = 0;
  bool has_space = false;  // of Unicode, inside the word
};

struct PairRow {
  int32_t left = 0, right = 0;
  std::optional<int64_t> count = {};                       // in the small table
  std::optional<int64_t> full_count = {};                  // in the full one
  std::vector<std::pair<int32_t, int32_t>> in_words = {};  // word, change of its number of occurrences
};

class Learner {
 public:
  Learner(const WordCounts& words, int64_t min_frequency) : min_frequency_(min_frequency) {
    for (const auto& [word, count] : words.rows()) add_word(word, count);
    for (PairRow& row : rows_) row.full_count = row.count;
    int64_t most = 0;
    for (const PairRow& row : rows_) most = std::max(most, *row.count);
    threshold_ = static_cast<double>(most) / 10;
  }

  // Merge number i; none when no pair is frequent enough.
  std::optional<BpePair> next(int i) {
    if (rows_.empty()) return std::nullopt;
    std::optional<int32_t> best = most_frequent();
    if (!best || (i > 0 && static_cast<double>(*row(*best).count) < threshold_)) {
      prune();
      restore_all();
      best = most_frequent();
      threshold_ = static_cast<double>(*row(*best).count) * i / (i + 10000.0);
      prune();
    }
    if (row(*best).count.value_or(0) < min_frequency_) return std::nullopt;
    const BpePair pair(text(row(*best).left), text(row(*best).right));
    merge(*best);
    if (i % 100 == 0) prune();
    return pair;
  }

 private:
  PairRow& row(int32_t id) { return rows_[static_cast<size_t>(id)]; }
  const std::string& text(int32_t symbol) const { return texts_[static_cast<size_t>(symbol)]; }

  int32_t symbol_id(const std::string& symbol) {
    const auto [found, is_new] = symbol_ids_.try_emplace(symbol, static_cast<int32_t>(texts_.size()));
    if (is_new) texts_.push_back(symbol);
    return found->second;
  }

  int32_t pair_id(int32_t left, int32_t right) {
    const uint64_t key = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
    const auto [found, is_new] = pair_ids_.try_emplace(key, static_cast<int32_t>(rows_.size()));
    if (is_new) rows_.push_back({.left = left, .right = right});
    return found->second;
  }

  void add_word(const std::string& word, int64_t count) {
    LearnedWord learned{.count = count};
    std::vector<std::string> symbols;
    for_each_code_point(word, [&](char32_t c, size_t) {
      append_utf8(symbols.emplace_back(), c);
      learned.has_space = learned.has_space || is_space(c);
    });
    symbols.back() += bpe_word_end;
    for (const std::string& symbol : symbols) learned.symbols.push_back(symbol_id(symbol));
    const auto number = static_cast<int32_t>(words_.size());
    for (size_t i = 0; i + 1 < learned.symbols.size(); ++i)
      change(learned.symbols[i], learned.symbols[i + 1], number, count, 1);
    words_.push_back(std::move(learned));
  }

  // One occurrence of the pair more (sign 1) or less (-1) in a word.
  void change(int32_t left, int32_t right, int32_t word, int64_t count, int32_t sign) {
    const int32_t id = pair_id(left, right);
    PairRow& changed = row(id);
    if (!changed.count) active_.push_back(id);
    changed.count = changed.count.value_or(0) + sign * count;
    changed.in_words.emplace_back(word, sign);
  }

  // Of equally frequent pairs the last in the order of code points, which is that of UTF-8.
  std::optional<int32_t> most_frequent() {
    std::optional<int32_t> best;
    for (const int32_t id : active_) {
      if (best && *row(id).count < *row(*best).count) continue;
      if (!best || *row(id).count > *row(*best).count || comes_later(row(id), row(*best))) best = id;
    }
    return best;
  }
  bool comes_later(const PairRow& a, const PairRow& b) const {
    return a.left == b.left ? text(a.right) > text(b.right) : text(a.left) > text(b.left);
  }

  void prune() {
    std::erase_if(active_, [this](int32_t id) {
      PairRow& pair = row(id);
      if (static_cast<double>(*pair.count) >= threshold_) return false;
      pair.full_count = *pair.count < 0 ? pair.full_count.value_or(0) + *pair.count : *pair.count;
      pair.count.reset();
      return true;
    });
  }

  void restore_all() {
    active_.clear();
    for (size_t id = 0; id < rows_.size(); ++id) {
      rows_[id].count = rows_[id].full_count;
      if (rows_[id].count) active_.push_back(static_cast<int32_t>(id));
    }
  }

  void merge(int32_t id) {
    const int32_t left = row(id).left, right = row(id).right;
    const int32_t joined = symbol_id(text(left) + text(right));
    auto in_words = std::move(row(id).in_words);
    row(id).in_words.clear();
    row(id).count = 0;
    std::ranges::sort(in_words);
    for (size_t i = 0; i < in_words.size();) {
      const int32_t number = in_words[i].first;
      int64_t occurrences = 0;
      for (; i < in_words.size() && in_words[i].first == number; ++i) occurrences += in_words[i].second;
      if (occurrences < 1) continue;
      LearnedWord& word = words_[static_cast<size_t>(number)];
      const Symbols old = word.symbols;
      word.symbols = word.has_space ? replaced_in_text(old, left, right) : replaced(old, left, right, joined);
      take_off(old, left, right, number, word.count);
      put_on(word.symbols, joined, number, word.count);
    }
    row(id).count = 0;
  }

  static Symbols replaced(const Symbols& symbols, int32_t left, int32_t right, int32_t joined) {
    Symbols out;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool match = i + 1 < symbols.size() && symbols[i] == left && symbols[i + 1] == right;
      out.push_back(match ? joined : symbols[i]);
      i += match;
    }
    return out;
  }

  // subword-nmt replaces in a text of symbols with spaces between. White space inside a symbol is an edge to it, so
  // that a match may begin or end within a symbol.
  Symbols replaced_in_text(const Symbols& symbols, int32_t left, int32_t right) {
    std::u32string line;
    for (const int32_t symbol : symbols) {
      if (!line.empty()) line += U' ';
      line += to_code_points(text(symbol));
    }
    const std::u32string pair = to_code_points(text(left) + " " + text(right));
    std::u32string out;
    for (size_t i = 0; i < line.size();) {
      const size_t end = i + pair.size();
      const bool match = line.compare(i, pair.size(), pair) == 0 && (i == 0 || is_space(line[i - 1])) &&
                         (end >= line.size() || is_space(line[end]));
      out += match ? to_code_points(text(left) + text(right)) : line.substr(i, 1);
      i = match ? end : i + 1;
    }
    Symbols result;
    for (size_t start = 0; start <= out.size();) {
      const size_t end = std::min(out.find(U' ', start), out.size());
      result.push_back(symbol_id(to_utf8(out.substr(start, end - start))));
      start = end + 1;
    }
    return result;
  }

  // The neighbours that the merged pairs had.
  void take_off(const Symbols& old, int32_t left, int32_t right, int32_t word, int64_t count) {
    for (size_t i = 0; i + 1 < old.size(); ++i) {
      if (old[i] != left || old[i + 1] != right) continue;
      if (i > 0) change(old[i - 1], old[i], word, count, -1);
      const bool same_follows = i + 3 < old.size() && old[i + 2] == left && old[i + 3] == right;
      if (i + 2 < old.size() && !same_follows) change(old[i + 1], old[i + 2], word, count, -1);
      ++i;
    }
  }

  // The neighbours that the new symbol has.
  void put_on(const Symbols& symbols, int32_t joined, int32_t word, int64_t count) {
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i] != joined) continue;
      if (i > 0) change(symbols[i - 1], joined, word, count, 1);
      if (i + 1 < symbols.size() && symbols[i + 1] != joined) change(joined, symbols[i + 1], word, count, 1);
    }
  }

  int64_t min_frequency_;
  double threshold_ = 0;
  std::vector<LearnedWord> words_;
  std::vector<std::string> texts_;  // of the symbols
  std::unordered_map<std::string, int32_t> symbol_ids_;
  std::vector<PairRow> rows_;
  std::unordered_map<uint64_t, int32_t> pair_ids_;
  std::vector<int32_t> active_;  // pairs in the small table
};

}  // namespace

BpeCodes learn_bpe(const WordCounts& words, const BpeLearning& options, const std::function<void(int)>& progress) {
  Learner learner(words, options.min_frequency);
  BpeCodes codes;
  for (int i = 0; i < options.operations; ++i) {
    const std::optional<BpePair> pair = learner.next(i);
    if (!pair) break;
    codes.push_back(*pair);
    if (progress) progress(i + 1);
  }
  return codes;
}

}  // namespace normlab
