// BLEU: scores that sacreBLEU 2.6.0 gives, every smoothing, one and two references, nothing to match.
#include "normlab/stats/bleu.h"

#include <gtest/gtest.h>

#include "translation_examples.h"

namespace normlab {
namespace {

struct Case {
  BleuSmoothing smoothing;
  std::optional<double> value;
  double one_reference, two_references;
};

TEST(Bleu, EqualsSacrebleu) {
  const Case cases[] = {
      {BleuSmoothing::exp, {}, 24.019151501920845, 50.456668400584846},
      {BleuSmoothing::floor, {}, 16.062574700669433, 50.456668400584846},
      {BleuSmoothing::add_k, {}, 30.179224515939502, 59.23033072023246},
      {BleuSmoothing::none, {}, 0, 50.456668400584846},
      {BleuSmoothing::floor, 0.5, 24.019151501920845, 50.456668400584846},
      {BleuSmoothing::add_k, 2, 36.96629431395058, 64.67843638084013},
  };
  for (const Case& c : cases) {
    const BleuOptions options{.smoothing = c.smoothing, .value = c.value};
    EXPECT_DOUBLE_EQ(corpus_bleu(example_segments(1), options).score, c.one_reference);
    EXPECT_DOUBLE_EQ(corpus_bleu(example_segments(2), options).score, c.two_references);
  }
}

TEST(Bleu, CountsLengthsAndMatches) {
  const BleuScore score = corpus_bleu(example_segments(1));
  EXPECT_EQ(score.hypothesis_length, 15);
  EXPECT_EQ(score.reference_length, 18);
  EXPECT_EQ(score.correct, (std::array<double, 4>{12, 6, 2, 0}));
  EXPECT_EQ(score.total, (std::array<double, 4>{15, 12, 9, 6}));
  EXPECT_EQ(score.details(), "80.0/50.0/22.2/8.3 (BP = 0.819 ratio = 0.833 hyp_len = 15 ref_len = 18)");
}

TEST(Bleu, TakesTheNearestReferenceAndTheShorterOfTwo) {
  const auto reference_length = [](size_t hypothesis, std::vector<size_t> lengths) {
    Segment segment{.hypothesis = WordIds(hypothesis), .references = {}};
    for (const size_t length : lengths) segment.references.emplace_back(length);
    return bleu_statistics(segment)[1];
  };
  EXPECT_EQ(reference_length(5, {9, 4, 7}), 4);
  EXPECT_EQ(reference_length(5, {7, 3}), 3);
  EXPECT_EQ(reference_length(5, {3, 7}), 3);
}

TEST(Bleu, WithoutMatchesIsZero) {
  for (const BleuSmoothing smoothing : {BleuSmoothing::exp, BleuSmoothing::floor, BleuSmoothing::add_k}) {
    const std::vector<Segment> segments = {{{1, 2, 3}, {{4, 5, 6}}}};
    EXPECT_EQ(corpus_bleu(segments, {.smoothing = smoothing}).score, 0);
  }
  const std::vector<Segment> nothing = {{{}, {{1}}}};
  EXPECT_EQ(corpus_bleu(nothing).brevity_penalty, 0);
  EXPECT_EQ(corpus_bleu({}).score, 0);
}

// sacreBLEU's sentence scores with its effective order.
TEST(Bleu, EffectiveOrder) {
  const auto score = [](const Segment& segment, BleuSmoothing smoothing, bool effective = true) {
    return bleu(bleu_statistics(segment), {.smoothing = smoothing, .effective_order = effective}).score;
  };
  const Segment two{{1, 2}, {{1, 2}}}, three{{1, 9, 2}, {{1, 2, 3}}}, one{{1}, {{1, 2}}}, wrong{{1}, {{2}}};
  EXPECT_EQ(score(two, BleuSmoothing::exp), 100.00000000000004);
  EXPECT_EQ(score(two, BleuSmoothing::none, false), 0);
  EXPECT_EQ(score(three, BleuSmoothing::exp), 34.66806371753173);
  EXPECT_EQ(score(three, BleuSmoothing::floor), 14.938015821857212);
  EXPECT_EQ(score(three, BleuSmoothing::add_k), 57.73502691896257);
  EXPECT_EQ(score(three, BleuSmoothing::none), 0);
  EXPECT_EQ(score(one, BleuSmoothing::exp), 36.78794411714425);
  EXPECT_EQ(score(wrong, BleuSmoothing::exp), 0);
}

TEST(Bleu, MultiBleuLine) {
  StatisticRows rows;
  for (const Segment& segment : example_segments(2)) rows.push_back(bleu_statistics(segment));
  EXPECT_EQ(multi_bleu_line(sum_rows(rows)),
            "BLEU = 50.46, 93.3/75.0/55.6/16.7 (BP=1.000, ratio=1.000, hyp_len=15, ref_len=15)");
  EXPECT_EQ(multi_bleu_line(std::vector<double>(10)), "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)");
}

}  // namespace
}  // namespace normlab
