#include "normlab/study/analyse/scaling_points.h"

#include <algorithm>
#include <map>

#include "normlab/base/text.h"
#include "normlab/config/flops.h"
#include "normlab/config/parameters.h"
#include "normlab/study/analyse/study_text.h"

namespace normlab {
namespace {

bool starts_with_any(const std::string& key, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

// What names the scheme is all that is no matter of size, horizon or optimisation.
std::string scheme_of(const Plan& plan, const Trial& trial) {
  const auto& named = plan.spec.variants;  // each makes as many variants, one after the other
  std::vector<std::string> parts = {named.empty() ? scheme_label(plan.spec, trial.config.norm.name)
                                                  : named[trial.variant * named.size() / plan.variants.size()].label};
  for (const Axis& axis : plan.axes) {
    if (starts_with_any(axis.key, {"ladder.", "model.", "optim.", "train."})) continue;
    if (axis.key == "norm.scheme" && named.empty()) continue;
    for (const Setting& each : plan.variants[trial.variant].settings)
      if (each.key == axis.key)
        parts.push_back(concat(axis.key.substr(axis.key.find('.') + 1), " = ", each.values.front()));
  }
  return join(parts, ", ");
}

std::string size_of(const Variant& variant) {
  std::vector<std::string> parts;
  for (const Setting& each : variant.settings)
    if (starts_with_any(each.key, {"ladder.", "model.", "train."}) && each.key != "train.batch_size")
      parts.push_back(concat(each.key.substr(each.key.find('.') + 1), " = ", each.values.front()));
  return join(parts, ", ");
}

// Parameters that a token of the vocabulary adds give the vocabulary's size back.
int vocab_of(const Config& config, int64_t parameters) {
  const int64_t one = count_parameters(config.model, config.norm, 1).total;
  const int64_t each = count_parameters(config.model, config.norm, 2).total - one;
  return static_cast<int>(1 + (parameters - one) / each);
}

// Points that all curves have.
std::vector<CurvePoint> mean_curve(const std::vector<const TrialResult*>& trials) {
  std::map<int64_t, std::vector<double>> losses;
  std::map<int64_t, double> seconds;
  for (const TrialResult* trial : trials)
    for (const EvalPoint& point : trial->curve)
      losses[point.step].push_back(point.loss), seconds[point.step] = point.wall_seconds;
  std::vector<CurvePoint> curve;
  for (const auto& [step, values] : losses)
    if (values.size() == trials.size()) curve.push_back({static_cast<double>(step), 0.0, mean(values)});
  return curve;
}

ScalingRun run_of(const Plan& plan, const Trial& trial, const std::vector<const TrialResult*>& finished,
                  CountedParams counted) {
  const Config& config = trial.config;
  const TrialRecord& record = finished.front()->record;
  const double batch = double{1} * config.train.batch_size * config.train.accumulate * config.model.seq_len;
  const double steps = static_cast<double>(record.step);
  ScalingRun run{.scheme = scheme_of(plan, trial),
                 .size = size_of(plan.variants[trial.variant]),
                 .n_params = static_cast<double>(record.parameters),
                 .n_tokens = steps * batch,
                 .flops = steps * flops_of_step(config, vocab_of(config, record.parameters)),
                 .batch = batch,
                 .lr = config.optim.lr,
                 .curve = mean_curve(finished)};
  if (counted == CountedParams::body)
    run.n_params = static_cast<double>(count_parameters(config.model, config.norm, 1).body);
  std::vector<double> losses;
  for (const TrialResult* each : finished) losses.push_back(each->curve.back().loss);
  run.loss = mean(losses);
  return run;
}

}  // namespace

void add_study(ScalingData& data, const StudyResults& results, CountedParams counted) {
  const Plan& plan = results.plan;
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    std::vector<const TrialResult*> finished;
    for (const TrialResult& each : results.trials) {
      if (each.variant != v) continue;
      if (is_finished(each))
        finished.push_back(&each);
      else
        data.notes.push_back(concat(trial_name(results, each), " is left out: ", name_of(each.record.status)));
    }
    if (!finished.empty()) data.runs.push_back(run_of(plan, plan.trials[v], finished, counted));
  }
}

ScalingData best_of_grids(ScalingData data) {
  ScalingData out{.runs = {}, .notes = std::move(data.notes)};
  std::map<std::pair<std::string, std::string>, size_t> place;
  size_t beaten = 0;
  for (ScalingRun& run : data.runs) {
    const bool from_study = run.batch > 0;
    const auto [found, is_new] = place.try_emplace({run.scheme, run.size}, out.runs.size());
    if (is_new || !from_study) {
      out.runs.push_back(std::move(run));
      continue;
    }
    ++beaten;
    ScalingRun& best = out.runs[found->second];
    if (run.loss < best.loss) best = std::move(run);
  }
  if (beaten > 0)
    out.notes.push_back(concat(beaten,
                               " runs are left out of L(N, D): another learning rate or batch size of the same ",
                               "scheme, size and horizon ended lower"));
  return out;
}

}  // namespace normlab
