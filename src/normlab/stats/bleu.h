// BLEU (Papineni et al., 2002) as sacreBLEU 2.6.0 and Moses' multi-bleu.perl compute it, from token ids.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "normlab/stats/segments.h"

namespace normlab {

inline constexpr int bleu_order = 4;

// What becomes of a precision without matches (Chen and Cherry, 2014). `exp`: half, a quarter, ... of a match;
// `floor`: `value` matches; `add_k`: `value` more matches and n-grams of every order but the first.
enum class BleuSmoothing { exp, floor, add_k, none };
inline constexpr std::string_view bleu_smoothings[] = {"exp", "floor", "add-k", "none"};  // in the enumerators' order

struct BleuOptions {
  BleuSmoothing smoothing = BleuSmoothing::exp;
  std::optional<double> value = {};  // of floor (0.1 unless given) and add-k (1)
  bool effective_order = false;      // orders that the hypothesis is too short for do not count: for single sentences
};

struct BleuScore {
  double score = 0;                             // 0 to 100
  std::array<double, bleu_order> precisions{};  // 0 to 100
  std::array<double, bleu_order> correct{}, total{};
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0, reference_length = 0;

  double length_ratio() const;
  // "64.3/39.8/25.9/17.2 (BP = 0.993 ratio = 0.993 hyp_len = 33459 ref_len = 33682)", as sacreBLEU prints it.
  std::string details() const;
};

// Lengths, matches and n-grams of a segment; the reference nearest in length counts, the shorter one of two.
std::vector<double> bleu_statistics(const Segment& segment);

BleuScore bleu(std::span<const double> sums, const BleuOptions& options = {});
BleuScore corpus_bleu(std::span<const Segment> segments, const BleuOptions& options = {});

// The value of floor or add-k that is used; none for the others.
std::optional<double> smoothing_value(const BleuOptions& options);

// The line that multi-bleu.perl prints. Its words are those of split_ascii_spaces.
std::string multi_bleu_line(std::span<const double> sums);

}  // namespace normlab
