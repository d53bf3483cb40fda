#include "normlab/study/present/scaling_tables.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/report/scale.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

// Very large and very small numbers by powers of ten, others as they are.
std::string short_number(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "not defined" : "unbounded";
  if (std::abs(value) < 1e-9) return "0";
  return with_minus(significant(value, digits));
}

Cell estimate_cell(double value, const Interval& interval, int digits = 3) {
  return {estimate_text(value, interval, digits), value};
}

std::string sentence_of(const Projection& projection, const ScalingAnalysis& analysis) {
  const Estimate &loss = projection.advantage.loss_difference, &factor = projection.advantage.compute_factor;
  const std::string rival = analysis.schemes[projection.scheme].scheme, baseline = analysis.schemes.front().scheme;
  const auto interval_text = [](const Estimate& estimate) {
    return concat("95 % interval ", short_number(estimate.interval.low, 3), " to ",
                  short_number(estimate.interval.high, 3));
  };
  std::string out = projection.multiple > 1 ? concat("At ", projection.multiple,
                                                     " times the operations of the largest run, an extrapolation, ")
                                            : std::string("At the operations of the largest run ");
  const bool shown = loss.interval.low > 0 || loss.interval.high < 0;
  if (shown)
    out += concat("the best ", rival, " is expected ", loss.value < 0 ? "below" : "above", " the best ", baseline);
  else
    out += concat("the best ", rival, " and the best ", baseline, " do not differ significantly");
  return concat(out, ": difference of loss ", short_number(loss.value, 3), " nats, ", interval_text(loss), "; ",
                baseline, " needs ", short_number(factor.value, 3), " times as many operations for the same loss, ",
                interval_text(factor), ".");
}

}  // namespace

std::string spoken(const std::string& scheme) { return scheme.empty() ? "the points" : scheme; }

std::string estimate_text(double value, const Interval& interval, int digits) {
  return concat(short_number(value, digits), " (", short_number(interval.low, digits), " to ",
                short_number(interval.high, digits), ")");
}

std::vector<std::string> scaling_findings(const ScalingAnalysis& analysis) {
  std::vector<std::string> found;
  for (const SameSize& each : analysis.same_size) {
    const auto lower = std::count_if(each.differences.begin(), each.differences.end(), [](double d) { return d < 0; });
    found.push_back(concat("At the same size and horizon ", analysis.schemes[each.scheme].scheme, " ends ",
                           significant(std::abs(each.test.mean), 3), " nats ", each.test.mean < 0 ? "below " : "above ",
                           analysis.schemes.front().scheme, " on average over ", each.differences.size(),
                           " pairs of runs (95 % interval of the difference ", short_number(each.test.interval.low, 3),
                           " to ", short_number(each.test.interval.high, 3), "; lower in ", lower, " of ",
                           each.differences.size(), ")."));
  }
  for (const Projection& each : analysis.projections)
    if (each.multiple == 1) found.push_back(sentence_of(each, analysis));
  if (analysis.shared)
    found.push_back(concat(analysis.shared->p_value <= 0.05 ? "The schemes do not share their exponents"
                                                            : "The data are consistent with shared exponents",
                           " (p-value ", p_text(analysis.shared->p_value),
                           "; shared they are exp_params = ", significant(analysis.shared->exp_params, 3),
                           ", exp_tokens = ", significant(analysis.shared->exp_tokens, 3), ")."));
  for (const Projection& each : analysis.projections)
    if (each.multiple == 100) found.push_back(sentence_of(each, analysis));
  for (const SchemeFit& each : analysis.schemes) {
    const ScalingLaw& law = each.fit.law;
    found.push_back(concat(spoken(each.scheme), ": L = ", short_number(law.floor, 3), " + ",
                           significant(law.a_params, 3), " / N^", significant(law.exp_params, 3), " + ",
                           significant(law.b_tokens, 3), " / D^", significant(law.exp_tokens, 3), ", within ",
                           significant(100 * each.fit.goodness.rms, 2), " % of ", plural(each.runs.size(), "run"),
                           " (root mean square)."));
  }
  return found;
}

std::vector<std::string> bootstrap_texts(const ScalingAnalysis& analysis) {
  std::vector<std::string> texts;
  for (const SchemeFit& each : analysis.schemes) {
    const auto& [kind, chosen, variance] = each.fit.resampling;
    constexpr size_t few_runs = 20;
    const bool unequal = variance.p_value <= unequal_variance;
    const std::string found = concat(
        unequal ? "the size of the residuals may depend on N or D" : "their size does not show a dependence on N or D",
        " (test of Breusch and Pagan on their sizes, p-value ", p_text(variance.p_value),
        !unequal && each.runs.size() < few_runs ? "; with few runs the test has little power" : "", ")");
    texts.push_back(concat("Intervals", each.scheme.empty() ? "" : concat(" of ", each.scheme), ": ",
                           bootstrap_names[static_cast<size_t>(kind)], " bootstrap, ",
                           chosen ? concat("because ", found) : concat("as asked for; ", found), "."));
  }
  return texts;
}

Table coefficient_table(const ScalingAnalysis& analysis) {
  Table table{
      "Coefficients of L(N, D) = floor + a_params / N^exp_params + b_tokens / D^exp_tokens, with 95 % intervals",
      {{"", "coefficient", Align::left, Best::none}},
      {}};
  if (analysis.schemes.empty()) return table;
  for (const SchemeFit& each : analysis.schemes) table.columns.push_back({spoken(each.scheme)});
  const auto add = [&](const char* name, const auto& value) {
    table.rows.push_back({text_cell(name)});
    for (const SchemeFit& each : analysis.schemes)
      table.rows.back().push_back(estimate_cell(value(each.fit.law), each.fit.interval(value)));
  };
  for (const Coefficient& each : coefficients) add(each.name, [&](const ScalingLaw& law) { return law.*each.member; });
  add("loss falls as compute to the", [](const ScalingLaw& law) { return -exp_compute(law); });
  add("best N grows as compute to the", exp_optimal_params);
  return table;
}

Table goodness_table(const ScalingAnalysis& analysis) {
  Table table{"Goodness of fit; residuals are those of log loss, so 0.01 is about one percent",
              {{"law", "law", Align::left, Best::none},
               {"points", "points"},
               {"coefficients", "coefficients"},
               {"R\xC2\xB2 of log loss", "r_squared"},
               {"root mean square residual", "rms", Align::right, Best::lowest},
               {"largest residual", "largest"}},
              {}};
  const auto add = [&](const SchemeFit& each, const char* name, const Goodness& goodness, int n_coefficients) {
    table.rows.push_back({text_cell(each.scheme.empty() ? name : concat(each.scheme, ", ", name)),
                          count_cell(each.runs.size()), count_cell(static_cast<size_t>(n_coefficients)),
                          number_cell(goodness.r_squared), number_cell(goodness.rms, 3),
                          number_cell(goodness.largest, 3)});
  };
  for (const SchemeFit& each : analysis.schemes) {
    add(each, "Hoffmann et al.", each.fit.goodness, 5);
    add(each, "Kaplan et al.", each.kaplan.goodness, 4);
  }
  return table;
}

Table projection_table(const ScalingAnalysis& analysis) {
  const std::string baseline = analysis.schemes.empty() ? "" : analysis.schemes.front().scheme;
  Table table{concat("On the compute-optimal frontiers, against ", baseline,
                     ", with 95 % intervals; all but the first of ", "each scheme are extrapolations"),
              {{"scheme", "scheme", Align::left, Best::none},
               {"operations", "flops"},
               {"times the largest run", "multiple"},
               {"difference of loss, nats", "loss_difference"},
               {concat("operations that ", baseline, " needs for the same loss, as a multiple"), "compute_factor"}},
              {}};
  for (const Projection& each : analysis.projections)
    table.rows.push_back({text_cell(analysis.schemes[each.scheme].scheme),
                          {si(each.advantage.flops), each.advantage.flops},
                          {concat(each.multiple), each.multiple},
                          estimate_cell(each.advantage.loss_difference.value, each.advantage.loss_difference.interval),
                          estimate_cell(each.advantage.compute_factor.value, each.advantage.compute_factor.interval)});
  return table;
}

Table batch_table(const ScalingAnalysis& analysis) {
  Table table{"Critical batch size, in tokens per step, with 95 % intervals",
              {{"scheme", "scheme", Align::left, Best::none},
               {"size", "size", Align::left, Best::none},
               {"loss reached", "loss"},
               {"batch sizes", "batches"},
               {"critical batch", "critical_batch_tokens"},
               {"fewest steps", "steps_min"},
               {"fewest tokens", "tokens_min"}},
              {}};
  for (const BatchFit& each : analysis.batches) {
    const auto cell = [&](const auto& value) { return estimate_cell(value(each.fit.law), each.fit.interval(value)); };
    table.rows.push_back({text_cell(spoken(each.scheme)), text_cell(each.size), number_cell(each.target),
                          count_cell(each.points.size()), cell([](const BatchLaw& law) { return law.critical(); }),
                          cell([](const BatchLaw& law) { return law.steps_min; }),
                          cell([](const BatchLaw& law) { return law.tokens_min; })});
  }
  return table;
}

Table run_table(const ScalingAnalysis& analysis) {
  Table table{"The runs",
              {{"scheme", "scheme", Align::left, Best::none},
               {"parameters", "n_params"},
               {"tokens", "n_tokens"},
               {"operations", "flops"},
               {"loss", "loss"},
               {"residual of log loss", "log_residual"}},
              {}};
  for (const SchemeFit& scheme : analysis.schemes)
    for (size_t i = 0; i < scheme.runs.size(); ++i) {
      const ScalingRun& run = scheme.runs[i];
      const double flops = run_flops(scheme, run);
      table.rows.push_back({text_cell(scheme.scheme),
                            {si(run.n_params), run.n_params},
                            {si(run.n_tokens), run.n_tokens},
                            {si(flops), flops},
                            number_cell(run.loss),
                            signed_cell(scheme.fit.residuals[i], 4)});
    }
  return table;
}

}  // namespace normlab
