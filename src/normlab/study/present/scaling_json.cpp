#include "normlab/study/present/scaling_json.h"

#include <nlohmann/json.hpp>

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

Json pair_of(const Interval& interval) { return Json::array({interval.low, interval.high}); }
Json json_of(const Estimate& estimate) { return {{"value", estimate.value}, {"interval", pair_of(estimate.interval)}}; }
Json json_of(const Goodness& goodness) {
  return {{"r_squared", goodness.r_squared},
          {"rms_log_residual", goodness.rms},
          {"largest_log_residual", goodness.largest}};
}

Json json_of(const Resampling& resampling) {
  return {{"kind", bootstrap_names[static_cast<size_t>(resampling.kind)]},
          {"chosen_by_test", resampling.chosen},
          {"variance_test",
           {{"statistic", resampling.variance.statistic},
            {"df", resampling.variance.df},
            {"p_value", resampling.variance.p_value}}}};
}

// A member or a function of a law, with its interval.
template <class Law, class Value>
void add(Json& out, const char* name, const LawFit<Law>& fit, const Value& value) {
  out[name] = value(fit.law);
  out["intervals"][name] = pair_of(fit.interval(value));
}

Json scheme_json(const SchemeFit& scheme) {
  Json out = {{"scheme", scheme.scheme}, {"points", scheme.runs.size()}};
  for (const Coefficient& each : coefficients) out[each.name] = scheme.fit.law.*each.member;
  out["intervals"] = Json::object();
  for (const Coefficient& each : coefficients)
    add(out, each.name, scheme.fit, [&](const ScalingLaw& law) { return law.*each.member; });
  add(out, "exp_compute", scheme.fit, exp_compute);
  add(out, "exp_optimal_params", scheme.fit, exp_optimal_params);
  out["flops_per_param_token"] = scheme.flops_per_param_token;
  out["bootstrap"] = json_of(scheme.fit.resampling);
  out["goodness"] = json_of(scheme.fit.goodness);
  Json kaplan = Json::object();
  add(kaplan, "n_critical", scheme.kaplan, [](const KaplanLaw& law) { return law.n_critical; });
  add(kaplan, "d_critical", scheme.kaplan, [](const KaplanLaw& law) { return law.d_critical; });
  add(kaplan, "exp_params", scheme.kaplan, [](const KaplanLaw& law) { return law.exp_params; });
  add(kaplan, "exp_tokens", scheme.kaplan, [](const KaplanLaw& law) { return law.exp_tokens; });
  kaplan["bootstrap"] = json_of(scheme.kaplan.resampling);
  kaplan["goodness"] = json_of(scheme.kaplan.goodness);
  out["kaplan"] = kaplan;
  out["runs"] = Json::array();
  for (size_t i = 0; i < scheme.runs.size(); ++i) {
    const ScalingRun& run = scheme.runs[i];
    out["runs"].push_back({{"n_params", run.n_params},
                           {"n_tokens", run.n_tokens},
                           {"flops", run_flops(scheme, run)},
                           {"loss", run.loss},
                           {"log_residual", scheme.fit.residuals[i]}});
  }
  return out;
}

Json batch_json(const BatchFit& batch) {
  Json out = {{"scheme", batch.scheme}, {"size", batch.size}, {"loss", batch.target}};
  add(out, "critical_batch_tokens", batch.fit, [](const BatchLaw& law) { return law.critical(); });
  add(out, "steps_min", batch.fit, [](const BatchLaw& law) { return law.steps_min; });
  add(out, "tokens_min", batch.fit, [](const BatchLaw& law) { return law.tokens_min; });
  out["points"] = Json::array();
  for (const BatchPoint& point : batch.points)
    out["points"].push_back({{"batch_tokens", point.batch}, {"steps", point.steps}});
  return out;
}

}  // namespace

std::string scaling_json(const ScalingAnalysis& analysis) {
  Json out = Json::object();
  if (analysis.schemes.size() == 1) {
    out = scheme_json(analysis.schemes.front());
  } else {
    out["schemes"] = Json::array();
    for (const SchemeFit& scheme : analysis.schemes) out["schemes"].push_back(scheme_json(scheme));
  }
  if (analysis.shared)
    out["shared_exponents"] = {{"exp_params", analysis.shared->exp_params},
                               {"exp_tokens", analysis.shared->exp_tokens},
                               {"statistic", analysis.shared->statistic},
                               {"p_value", analysis.shared->p_value}};
  for (const Projection& each : analysis.projections)
    out["projections"].push_back({{"scheme", analysis.schemes[each.scheme].scheme},
                                  {"baseline", analysis.schemes.front().scheme},
                                  {"flops", each.advantage.flops},
                                  {"extrapolated", each.multiple > 1},
                                  {"loss_difference", json_of(each.advantage.loss_difference)},
                                  {"compute_factor", json_of(each.advantage.compute_factor)}});
  for (const SameSize& each : analysis.same_size)
    out["same_size"].push_back({{"scheme", analysis.schemes[each.scheme].scheme},
                                {"baseline", analysis.schemes.front().scheme},
                                {"differences", each.differences},
                                {"mean", each.test.mean},
                                {"interval", pair_of(each.test.interval)}});
  for (const BatchFit& batch : analysis.batches) out["critical_batch"].push_back(batch_json(batch));
  out["notes"] = analysis.notes;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace normlab
