#include "normlab/study/present/bleu_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/load_data.h"
#include "normlab/data/detokenizer.h"
#include "normlab/data/score_tokenizer.h"
#include "normlab/data/text_lines.h"
#include "normlab/report/line_chart.h"
#include "normlab/stats/bleu.h"
#include "normlab/stats/significance.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

bool has_bleu(const TrialResult& trial) { return is_finished(trial) && !trial.bleus.empty(); }

double best_dev(const TrialResult& trial) {
  double best = 0.0;
  for (const BleuPoint& point : trial.bleus) best = std::max(best, point.bleu);
  return best;
}

// The test text's where there is one: the development text has chosen the checkpoint.
double score_of(const TrialResult& trial) { return trial.test_bleu.value_or(best_dev(trial)); }

const TrialResult* partner_of(const ChartInput& input, const TrialResult& trial) {
  for (const TrialResult& other : input.results.trials)
    if (other.variant == input.analysis.baseline && other.fold == trial.fold && other.seed == trial.seed &&
        has_bleu(other))
      return &other;
  return nullptr;
}

std::string bleu_interval(const Interval& interval) {
  return concat(signed_cell(interval.low, 2).text, " to ", signed_cell(interval.high, 2).text);
}

Cell mean_cell(const std::vector<double>& values) {
  if (values.empty()) return {dash, std::nullopt};
  return {fixed(mean(values), 2), mean(values)};
}

// Adjusted for the number of comparisons, as those of losses are; `p_values` has none where nothing was tested.
void add_adjusted(Table& table, const std::vector<std::optional<double>>& p_values) {
  std::vector<double> tested;
  for (const auto& p : p_values)
    if (p) tested.push_back(*p);
  const std::vector<double> adjusted = holm(tested);
  table.columns.push_back({"adjusted p-value", "adjusted_p", Align::right});
  table.columns.push_back({"p-value", "p", Align::right});
  for (size_t i = 0, next = 0; i < table.rows.size(); ++i) {
    if (!p_values[i]) {
      table.rows[i].insert(table.rows[i].end(), 2, text_cell(dash));
      continue;
    }
    table.rows[i].push_back({p_text(adjusted[next]), adjusted[next]});
    table.rows[i].push_back({p_text(*p_values[i]), *p_values[i]});
    ++next;
  }
}

void add_tests(Table& table, const std::vector<std::optional<TTest>>& tests) {
  std::vector<TTest> tested;
  std::vector<std::optional<double>> p_values;
  for (const auto& test : tests) {
    if (test) tested.push_back(*test);
    p_values.push_back(test ? std::optional(test->p_value) : std::nullopt);
  }
  const std::vector<Interval> intervals = holm_intervals(tested, significance);
  table.columns.push_back(
      {tested.size() > 1 ? "adjusted 95 % interval (paired t)" : "95 % interval (paired t)", "interval", Align::right});
  for (size_t i = 0, next = 0; i < table.rows.size(); ++i)
    table.rows[i].push_back(text_cell(tests[i] ? bleu_interval(intervals[next++]) : dash));
  add_adjusted(table, p_values);
}

using SplitLine = std::function<Words(std::string_view)>;

// Statistics of the translated test text of a trial, line by line; empty when it is not there.
StatisticRows test_rows(const ChartInput& input, const TrialResult& trial, const std::vector<std::string>& reference,
                        const SplitLine& split_line) {
  const TranslationConfig& config = input.results.plan.trials.front().config.translation;
  const fs::path file = input.results.plan.folder / trial.folder / "translations" / concat("test.", config.target);
  if (!fs::exists(file)) return {};
  const std::vector<std::string> output = read_lines(file);
  if (output.size() != reference.size()) return {};
  TokenIds ids;
  StatisticRows rows;
  for (size_t i = 0; i < output.size(); ++i) {
    Segment segment;
    segment.hypothesis = ids(split_line(output[i]));
    segment.references.push_back(ids(split_line(reference[i])));
    rows.push_back(bleu_statistics(segment));
  }
  return rows;
}

std::vector<std::string> test_reference(const Config& config) {
  try {
    return load_test_reference(files_of(config));
  } catch (const Error&) {
    return {};  // the text is not on this machine: what needs it is left out
  }
}

// For tokenised text: BLEU of the test text after detokenisation, as sacreBLEU would report it.
void add_detokenised(Table& table, const ChartInput& input, const std::vector<std::string>& reference) {
  const TranslationConfig& config = input.results.plan.trials.front().config.translation;
  if (config.bleu != BleuWords::none || reference.empty()) return;
  std::vector<std::vector<double>> scores(table.rows.size());
  const SplitLine split_line = [&](std::string_view line) { return split_13a(detokenize(line, config.target)); };
  for (const TrialResult& trial : input.results.trials)
    if (const StatisticRows rows = test_rows(input, trial, reference, split_line); !rows.empty())
      scores[trial.variant].push_back(bleu(sum_rows(rows)).score);
  if (std::ranges::all_of(scores, &std::vector<double>::empty)) return;
  table.columns.push_back({"test text, detokenised", "detokenised_bleu", Align::right, Best::highest});
  for (size_t i = 0; i < table.rows.size(); ++i) table.rows[i].push_back(mean_cell(scores[i]));
}

Table mean_table(const ChartInput& input, const std::vector<std::string>& reference) {
  Table table{"BLEU; means over trials, differences paired by fold and seed",
              {{"", "variant", Align::left},
               {"trials", "", Align::right},
               {"best of development text", "dev_bleu", Align::right, Best::highest},
               {"test text", "test_bleu", Align::right, Best::highest},
               {"std. deviation", "", Align::right},
               {"difference", "", Align::right}},
              {}};
  std::vector<std::optional<TTest>> tests;
  for (size_t variant = 0; variant < input.results.plan.variants.size(); ++variant) {
    std::vector<double> dev, test, scores, differences;
    for (const TrialResult& trial : input.results.trials) {
      if (trial.variant != variant || !has_bleu(trial)) continue;
      dev.push_back(best_dev(trial));
      scores.push_back(score_of(trial));
      if (trial.test_bleu) test.push_back(*trial.test_bleu);
      const TrialResult* partner = partner_of(input, trial);
      if (partner && variant != input.analysis.baseline) differences.push_back(score_of(trial) - score_of(*partner));
    }
    std::vector<Cell> row = {text_cell(input.results.plan.variants[variant].label), text_cell(concat(dev.size())),
                             mean_cell(dev), mean_cell(test),
                             scores.size() > 1 ? number_cell(standard_deviation(scores), 2) : text_cell(dash)};
    row.push_back(differences.empty() ? text_cell(dash) : signed_cell(mean(differences), 2));
    const bool tested = differences.size() > 1 && standard_deviation(differences) > 0.0;
    tests.push_back(tested ? std::optional(paired_t(differences)) : std::nullopt);
    table.rows.push_back(std::move(row));
  }
  add_tests(table, tests);
  add_detokenised(table, input, reference);
  return table;
}

// The interval is the bootstrap's; the p-value is that of the randomisation, which keeps its level best.
Table output_table(const ChartInput& input, const std::vector<std::string>& reference) {
  const SignificanceOptions randomised{.test = PairedTest::randomization, .trials = 10000};
  const SignificanceOptions resampled{.test = PairedTest::bootstrap, .trials = 1000};
  Table table{concat("Test outputs against those of ", input.results.plan.variants[input.analysis.baseline].label,
                     ", seed by seed: interval of ", resampled.trials, " paired resamples, p-value of ",
                     randomised.trials, " randomisations"),
              {{"", "trial", Align::left},
               {"BLEU", "", Align::right},
               {"difference", "", Align::right},
               {"95 % interval", "interval", Align::right}},
              {}};
  std::vector<std::optional<double>> p_values;
  if (reference.empty()) return table;
  const SplitLine split_line =
      score_tokenizers[static_cast<size_t>(input.results.plan.trials.front().config.translation.bleu)].split;
  const ScoreOfSums score = [](std::span<const double> sums) { return bleu(sums).score; };
  for (const TrialResult& trial : input.results.trials) {
    const TrialResult* partner = partner_of(input, trial);
    if (trial.variant == input.analysis.baseline || !partner || !trial.test_bleu) continue;
    const StatisticRows baseline = test_rows(input, *partner, reference, split_line),
                        output = test_rows(input, trial, reference, split_line);
    if (baseline.empty() || output.empty()) continue;
    const Significance tested = compare_outputs(baseline, output, score, randomised);
    table.rows.push_back({text_cell(trial_name(input.results, trial)),
                          {fixed(*trial.test_bleu, 2), *trial.test_bleu},
                          signed_cell(tested.difference, 2),
                          text_cell(bleu_interval(compare_outputs(baseline, output, score, resampled).interval))});
    p_values.emplace_back(tested.p_value);
  }
  add_adjusted(table, p_values);
  return table;
}

}  // namespace

const char* const bleu_text =
    "Higher BLEU is better. The difference is that of the test text, or of the development text "
    "if there is no test text. The paired t-test is over trials, so it covers variation between seeds; the "
    "tests of outputs are over sentences, so they cover variation between test texts. Their interval is a "
    "paired bootstrap's, their p-value that of approximate randomisation, two-sided. Adjusted p-values are Holm's for "
    "the number of rows tested; the bootstrap's intervals are not adjusted. Where the text is tokenised, its BLEU is "
    "that "
    "of tokens, which is comparable only with scores of the same tokens; the last column is BLEU of the detokenised "
    "text with sacreBLEU's tokenisation 13a.";

std::optional<Figure> bleu_chart(const ChartInput& input) {
  LineChart chart{{"bleu", "BLEU of the development text during training", "Means over the trials of a variant.",
                   "Curves of BLEU against training step, one for each variant."},
                  {{"whole run", "training step"}},
                  {"BLEU"},
                  {}};
  for (size_t variant = 0; variant < input.results.plan.variants.size(); ++variant) {
    std::map<int64_t, std::vector<double>> by_step;
    for (const TrialResult& trial : input.results.trials)
      for (const BleuPoint& point : trial.bleus)
        if (trial.variant == variant) by_step[point.step].push_back(point.bleu);
    if (by_step.empty()) continue;
    Series series{.label = input.results.plan.variants[variant].label,
                  .style = input.styles.variants[variant],
                  .x = {{}},
                  .y = {}};
    for (const auto& [step, bleus] : by_step) {
      series.x.front().push_back(static_cast<double>(step));
      series.y.push_back(mean(bleus));
    }
    chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) return std::nullopt;
  return figure(chart);
}

std::vector<Table> bleu_tables(const ChartInput& input) {
  const std::vector<std::string> reference = test_reference(input.results.plan.trials.front().config);
  std::vector<Table> tables = {mean_table(input, reference)};
  if (Table outputs = output_table(input, reference); !outputs.rows.empty()) tables.push_back(std::move(outputs));
  return tables;
}

}  // namespace normlab
