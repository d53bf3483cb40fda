// The metrics of normlab score.
#include "normlab/cli/score_metrics.h"

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/unicode.h"
#include "normlab/stats/ter.h"

namespace normlab {
namespace {

constexpr int printed_decimals = 4;

std::vector<Segment> make_segments(const ScoredTexts& texts, const SplitLine& split, const SplitLine& split_reference) {
  TokenIds ids;
  std::vector<Segment> segments(texts.output.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    segments[i].hypothesis = ids(split(texts.output[i]));
    for (const auto& reference : texts.references) segments[i].references.push_back(ids(split_reference(reference[i])));
  }
  return segments;
}
std::vector<Segment> make_segments(const ScoredTexts& texts, const SplitLine& split) {
  return make_segments(texts, split, split);
}

StatisticRows rows_of(const std::vector<Segment>& segments, std::vector<double> (*statistics)(const Segment&)) {
  StatisticRows rows;
  for (const Segment& segment : segments) rows.push_back(statistics(segment));
  return rows;
}

SplitLine lower_cased(const SplitLine& split) {
  return [split](std::string_view line) { return split(to_lower(line)); };
}

const char* case_item(bool lowercase) { return lowercase ? "case:lc" : "case:mixed"; }
const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

std::string smoothing_item(const BleuOptions& options) {
  std::string item(bleu_smoothings[static_cast<size_t>(options.smoothing)]);
  if (const auto value = smoothing_value(options)) item += concat("[", fixed(*value, 2), "]");
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
  const SplitLine words = settings.lowercase ? lower_cased(settings.bleu_words) : settings.bleu_words;
  MetricResult out{.name = "BLEU",
                   .signature = concat(case_item(settings.lowercase), "|eff:", yes_or_no(options.effective_order),
                                       "|tok:", settings.tokenizer, "|smooth:", smoothing_item(options)),
                   .rows = rows_of(make_segments(texts, words), bleu_statistics),
                   .score = [options](std::span<const double> sums) { return bleu(sums, options).score; }};
  const BleuScore score = bleu(sum_rows(out.rows), options);
  out.line = concat(fixed(score.score, printed_decimals), " ", score.details());
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

MetricResult evaluate_chrf_of(const ScoredTexts& texts, const ScoreSettings& settings, int word_order) {
  ChrfOptions options = settings.chrf;
  options.word_order = settings.chrf_word_order.value_or(word_order);
  SplitLine split_text = settings.chrf_whitespace ? split_all_characters : split_characters;
  SplitLine split_text_words = split_chrf_words;
  if (settings.chrf_lowercase) {
    split_text = lower_cased(split_text);
    split_text_words = lower_cased(split_text_words);
  }
  const std::vector<Segment> characters = make_segments(texts, split_text);
  const std::vector<Segment> words =
      options.word_order > 0 ? make_segments(texts, split_text_words) : std::vector<Segment>(characters.size());
  MetricResult out{.name = concat("chrF", options.beta, std::string(static_cast<size_t>(options.word_order), '+')),
                   .signature = concat(case_item(settings.chrf_lowercase), "|eff:", yes_or_no(!options.eps_smoothing),
                                       "|nc:", options.character_order, "|nw:", options.word_order,
                                       "|space:", yes_or_no(settings.chrf_whitespace)),
                   .score = [options](std::span<const double> sums) { return chrf(sums, options); }};
  for (size_t i = 0; i < characters.size(); ++i)
    out.rows.push_back(chrf_statistics({characters[i], words[i]}, options));
  out.line = fixed(out.score(sum_rows(out.rows)), printed_decimals);
  return out;
}

MetricResult evaluate_chrf(const ScoredTexts& texts, const ScoreSettings& settings) {
  return evaluate_chrf_of(texts, settings, 0);
}
MetricResult evaluate_chrf_plus(const ScoredTexts& texts, const ScoreSettings& settings) {
  return evaluate_chrf_of(texts, settings, 2);
}

MetricResult evaluate_ter(const ScoredTexts& texts, const ScoreSettings& settings) {
  const TerWords& words = settings.ter;
  const SplitLine split_line = [&words](std::string_view line) { return split_ter(line, words); };
  // sacreBLEU splits references twice: what the first time leaves before a line break of Unicode, the second splits.
  const SplitLine split_twice = [&split_line](std::string_view line) {
    return split_line(join(split_line(line), " "));
  };
  MetricResult out{
      .name = "TER",
      .signature = concat(case_item(!words.case_sensitive), "|tok:tercom|norm:", yes_or_no(words.normalized),
                          "|punct:", yes_or_no(!words.no_punct), "|asian:", yes_or_no(words.asian)),
      .rows = rows_of(make_segments(texts, split_line, split_twice), ter_statistics),
      .score = ter};
  const std::vector<double> sums = sum_rows(out.rows);
  out.line = fixed(ter(sums), printed_decimals);
  out.details = {{"edits", sums[0]}, {"ref_len", sums[1]}};
  return out;
}

}  // namespace

const std::vector<ScoreMetric> score_metrics = {{"bleu", "BLEU", true, evaluate_bleu},
                                                {"chrf", "chrF", true, evaluate_chrf},
                                                {"chrf++", "chrF", true, evaluate_chrf_plus},
                                                {"ter", "TER", true, evaluate_ter},
                                                {"multi-bleu", "", false, evaluate_multi_bleu}};

const ScoreMetric& find_score_metric(const std::string& key) {
  for (const ScoreMetric& row : score_metrics)
    if (key == row.key) return row;
  throw UsageError("--metric",
                   concat("unknown metric; got '", key, "', expected bleu, chrf, chrf++, ter or multi-bleu."));
}

}  // namespace normlab
