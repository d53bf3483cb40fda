// The metrics of normlab score.
#include "cli/score_metrics.h"

#include "base/error.h"
#include "base/text.h"
#include "stats/chrf.h"
#include "stats/ter.h"

namespace normlab {
namespace {

constexpr int printed_decimals = 4;

std::vector<Segment> make_segments(const ScoredTexts& texts, Words (*split)(std::string_view)) {
  TokenIds ids;
  std::vector<Segment> segments(texts.output.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    segments[i].hypothesis = ids(split(texts.output[i]));
    for (const auto& reference : texts.references) segments[i].references.push_back(ids(split(reference[i])));
  }
  return segments;
}

StatisticRows rows_of(const std::vector<Segment>& segments, std::vector<double> (*statistics)(const Segment&)) {
  StatisticRows rows;
  for (const Segment& segment : segments) rows.push_back(statistics(segment));
  return rows;
}

std::string smoothing_item(const BleuOptions& options) {
  std::string item(bleu_smoothings[static_cast<size_t>(options.smoothing)]);
  if (const auto value = smoothing_value(options)) item += str("[", fixed(*value, 2), "]");
  return item;
}

nlohmann::ordered_json bleu_details(const BleuScore& score) {
  return {
      {"precisions", score.precisions},           {"correct", score.correct},      {"total", score.total},
      {"brevity_penalty", score.brevity_penalty}, {"ratio", score.length_ratio()}, {"hyp_len", score.hypothesis_length},
      {"ref_len", score.reference_length}};
}

MetricResult evaluate_bleu(const ScoredTexts& texts, const ScoreSettings& settings) {
  const BleuOptions options = settings.bleu;
  MetricResult out{
      .name = "BLEU",
      .signature = str("case:mixed|eff:no|tok:", settings.tokenizer.name, "|smooth:", smoothing_item(options)),
      .rows = rows_of(make_segments(texts, settings.tokenizer.split), bleu_statistics),
      .score = [options](std::span<const double> sums) { return bleu(sums, options).score; }};
  const BleuScore score = bleu(sum_rows(out.rows), options);
  out.line = str(fixed(score.score, printed_decimals), " ", score.details());
  out.details = bleu_details(score);
  return out;
}

MetricResult evaluate_multi_bleu(const ScoredTexts& texts, const ScoreSettings&) {
  const BleuOptions options{.smoothing = BleuSmoothing::none};
  MetricResult out{.name = "multi-bleu",
                   .rows = rows_of(make_segments(texts, split_ascii_spaces), bleu_statistics),
                   .score = [options](std::span<const double> sums) { return bleu(sums, options).score; }};
  const std::vector<double> sums = sum_rows(out.rows);
  out.line = multi_bleu_line(sums);
  out.details = bleu_details(bleu(sums, options));
  out.details["line"] = out.line;
  return out;
}

MetricResult evaluate_chrf_of(const ScoredTexts& texts, const ChrfOptions& options) {
  const std::vector<Segment> characters = make_segments(texts, split_characters);
  const std::vector<Segment> words =
      options.word_order > 0 ? make_segments(texts, split_chrf_words) : std::vector<Segment>(characters.size());
  MetricResult out{
      .name = str("chrF", options.beta, std::string(static_cast<size_t>(options.word_order), '+')),
      .signature = str("case:mixed|eff:yes|nc:", options.character_order, "|nw:", options.word_order, "|space:no"),
      .score = [options](std::span<const double> sums) { return chrf(sums, options); }};
  for (size_t i = 0; i < characters.size(); ++i)
    out.rows.push_back(chrf_statistics({characters[i], words[i]}, options));
  out.line = fixed(out.score(sum_rows(out.rows)), printed_decimals);
  return out;
}

MetricResult evaluate_chrf(const ScoredTexts& texts, const ScoreSettings&) { return evaluate_chrf_of(texts, {}); }
MetricResult evaluate_chrf_plus(const ScoredTexts& texts, const ScoreSettings&) {
  return evaluate_chrf_of(texts, {.word_order = 2});
}

MetricResult evaluate_ter(const ScoredTexts& texts, const ScoreSettings&) {
  MetricResult out{.name = "TER",
                   .signature = "case:lc|tok:tercom|norm:no|punct:yes|asian:no",
                   .rows = rows_of(make_segments(texts, split_lower_words), ter_statistics),
                   .score = ter};
  const std::vector<double> sums = sum_rows(out.rows);
  out.line = fixed(ter(sums), printed_decimals);
  out.details = {{"edits", sums[0]}, {"ref_len", sums[1]}};
  return out;
}

}  // namespace

const std::vector<ScoreMetric> score_metrics = {{"bleu", evaluate_bleu},
                                                {"chrf", evaluate_chrf},
                                                {"chrf++", evaluate_chrf_plus},
                                                {"ter", evaluate_ter},
                                                {"multi-bleu", evaluate_multi_bleu}};

const ScoreMetric& find_score_metric(const std::string& key) {
  for (const ScoreMetric& row : score_metrics)
    if (key == row.key) return row;
  throw UsageError("--metric", str("unknown metric; got '", key, "', expected bleu, chrf, chrf++, ter or multi-bleu."));
}

}  // namespace normlab
