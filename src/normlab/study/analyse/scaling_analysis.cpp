#include "normlab/study/analyse/scaling_analysis.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

std::vector<std::string> schemes_of(const ScalingData& data) {
  std::vector<std::string> names;
  for (const ScalingRun& run : data.runs)
    if (std::find(names.begin(), names.end(), run.scheme) == names.end()) names.push_back(run.scheme);
  return names;
}

std::vector<ScalingPoint> points_of(const std::vector<ScalingRun>& runs) {
  std::vector<ScalingPoint> points;
  for (const ScalingRun& run : runs) points.push_back({run.n_params, run.n_tokens, run.loss});
  return points;
}

SchemeFit fit_scheme(const std::string& name, const ScalingData& data, const FitOptions& options) {
  SchemeFit scheme{.scheme = name, .runs = {}, .fit = {}, .kaplan = {}};
  std::vector<double> ratios;
  for (const ScalingRun& run : data.runs) {
    if (run.scheme != name) continue;
    scheme.runs.push_back(run);
    if (run.flops > 0) ratios.push_back(run.flops / (run.n_params * run.n_tokens));
  }
  const std::vector<ScalingPoint> points = points_of(scheme.runs);
  require_points(name.empty() ? "fit" : name, points);
  if (!ratios.empty()) scheme.flops_per_param_token = median(ratios);
  scheme.fit = fit_scaling(points, options);
  scheme.kaplan = fit_kaplan(points, options);
  return scheme;
}

// What a reader should doubt.
void add_doubts(const SchemeFit& scheme, std::vector<std::string>& notes) {
  const std::string name = scheme.scheme.empty() ? "" : concat(scheme.scheme, ": ");
  for (const Coefficient& each : {coefficients[3], coefficients[4]})
    if (scheme.fit.law.*each.member <= 0)
      notes.push_back(concat(name, each.name, " is not above 0: the loss does not follow the law, and there is no ",
                             "compute-optimal frontier"));
  if (scheme.fit.law.floor < 1e-3) notes.push_back(concat(name, "the floor is 0: the data do not show one"));
  std::vector<double> sizes;
  for (const double residual : scheme.fit.residuals) sizes.push_back(std::abs(residual));
  const double usual = median(sizes);
  constexpr double too_far = 0.015;
  if (usual > too_far)
    notes.push_back(concat(name, "half of the runs lie more than ", significant(100 * usual, 2),
                           " % off the law: it does not describe them, and its coefficients mean little"));
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > std::max(10 * usual, 0.01))
      notes.push_back(concat(name, "the run with n_params = ", si(scheme.runs[i].n_params),
                             ", n_tokens = ", si(scheme.runs[i].n_tokens), " lies ", significant(100 * sizes[i], 2),
                             " % off the law, far more than the others; it is in the fit, but has little weight"));
}

std::vector<Projection> project(const std::vector<SchemeFit>& schemes) {
  double largest = 0;
  for (const SchemeFit& scheme : schemes)
    for (const ScalingRun& run : scheme.runs) largest = std::max(largest, run_flops(scheme, run));
  std::vector<Projection> out;
  for (size_t s = 1; s < schemes.size(); ++s)
    for (const double multiple : {1.0, 10.0, 100.0, 1000.0}) {
      const LawOfScheme baseline{schemes[0].fit, schemes[0].flops_per_param_token};
      const LawOfScheme rival{schemes[s].fit, schemes[s].flops_per_param_token};
      out.push_back({s, multiple, advantage(baseline, rival, multiple * largest)});
    }
  return out;
}

std::vector<SameSize> compare_same_sizes(const std::vector<SchemeFit>& schemes) {
  const auto alike = [](double a, double b) { return std::abs(std::log(a / b)) < 0.05; };
  std::vector<SameSize> out;
  for (size_t s = 1; s < schemes.size(); ++s) {
    SameSize same{.scheme = s, .differences = {}, .test = {}};
    for (const ScalingRun& ours : schemes[s].runs)
      for (const ScalingRun& theirs : schemes[0].runs)
        if (alike(ours.n_params, theirs.n_params) && alike(ours.n_tokens, theirs.n_tokens))
          same.differences.push_back(ours.loss - theirs.loss);
    if (same.differences.size() < 3) continue;
    same.test = paired_t(same.differences);
    out.push_back(same);
  }
  return out;
}

// Runs that differ only in learning rate and batch size, all schemes together so that their targets are the same.
struct BatchGrid {
  std::string size;
  std::vector<const ScalingRun*> runs;
};

std::vector<BatchGrid> batch_grids(const ScalingData& data) {
  std::vector<BatchGrid> grids;
  for (const ScalingRun& run : data.runs) {
    if (run.batch == 0 || run.curve.size() < 2) continue;
    auto found = std::find_if(grids.begin(), grids.end(), [&](const BatchGrid& g) { return g.size == run.size; });
    if (found == grids.end()) found = grids.insert(grids.end(), BatchGrid{run.size, {}});
    found->runs.push_back(&run);
  }
  return grids;
}

// The fewest steps of each batch size to the target, over learning rates.
std::vector<BatchPoint> steps_to(const BatchGrid& grid, const std::string& scheme, double target) {
  std::vector<BatchPoint> points;
  for (const ScalingRun* run : grid.runs) {
    if (run->scheme != scheme) continue;
    const auto reached = first_reached(run->curve, target, Smoothing::running_minimum);
    if (!reached || reached->step <= 0) continue;
    const auto same =
        std::find_if(points.begin(), points.end(), [&](const BatchPoint& p) { return p.batch == run->batch; });
    if (same == points.end())
      points.push_back({run->batch, reached->step});
    else
      same->steps = std::min(same->steps, reached->step);
  }
  return points;
}

// From the lowest loss that every scheme reaches with enough batch sizes, some way up to where training starts.
std::vector<double> targets_of(const BatchGrid& grid, const std::vector<std::string>& schemes) {
  constexpr int n_targets = 5;
  constexpr double highest_share = 0.25;
  double lowest = 0, start = 0;
  for (const std::string& scheme : schemes) {
    std::vector<std::pair<double, double>> best;  // batch, lowest loss
    for (const ScalingRun* run : grid.runs) {
      if (run->scheme != scheme) continue;
      start = std::max(start, run->curve.front().loss);
      double loss = run->curve.front().loss;
      for (const CurvePoint& point : run->curve) loss = std::min(loss, point.loss);
      const auto same = std::find_if(best.begin(), best.end(), [&](const auto& b) { return b.first == run->batch; });
      if (same == best.end())
        best.emplace_back(run->batch, loss);
      else
        same->second = std::min(same->second, loss);
    }
    if (best.empty()) continue;
    if (best.size() < least_batches) return {};
    std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    lowest = std::max(lowest, best[least_batches - 1].second);
  }
  std::vector<double> targets;
  for (int i = 0; i < n_targets; ++i)
    targets.push_back(lowest + highest_share * (start - lowest) * i / (n_targets - 1));
  return targets;
}

std::vector<BatchFit> fit_batches(const ScalingData& data, const FitOptions& options) {
  std::vector<BatchFit> fits;
  const std::vector<std::string> schemes = schemes_of(data);
  for (const BatchGrid& grid : batch_grids(data))
    for (const double target : targets_of(grid, schemes))
      for (const std::string& scheme : schemes) {
        const std::vector<BatchPoint> points = steps_to(grid, scheme, target);
        if (points.size() < least_batches) continue;
        fits.push_back({scheme, grid.size, target, points, fit_critical_batch(points, options)});
      }
  return fits;
}

}  // namespace

double run_flops(const SchemeFit& scheme, const ScalingRun& run) {
  return run.flops > 0 ? run.flops : scheme.flops_per_param_token * run.n_params * run.n_tokens;
}

ScalingAnalysis analyse_scaling(const ScalingData& data, const FitOptions& options) {
  const ScalingData best = best_of_grids(data);
  ScalingAnalysis analysis{.schemes = {},
                           .shared = {},
                           .projections = {},
                           .same_size = {},
                           .batches = fit_batches(data, options),
                           .notes = best.notes};
  std::optional<DataError> refused;
  for (const std::string& name : schemes_of(best)) try {
      analysis.schemes.push_back(fit_scheme(name, best, options));
      add_doubts(analysis.schemes.back(), analysis.notes);
    } catch (const DataError& error) {
      analysis.notes.push_back(error.what());
      if (!refused) refused = error;
    }
  if (analysis.schemes.empty() && analysis.batches.empty()) {
    if (!refused) throw DataError("fit", "there are no finished runs to fit.");
    const std::string left_out = best.notes.empty() ? "" : concat(" Left out: ", join(best.notes, "; "), ".");
    const std::string place = "[fit] ", reason = refused->what();
    throw DataError("fit", (reason.starts_with(place) ? reason.substr(place.size()) : reason) + left_out);
  }
  if (analysis.schemes.size() > 1) {
    std::vector<std::vector<ScalingPoint>> sets;
    for (const SchemeFit& scheme : analysis.schemes) sets.push_back(points_of(scheme.runs));
    analysis.shared = test_shared_exponents(sets, options);
    analysis.projections = project(analysis.schemes);
    analysis.same_size = compare_same_sizes(analysis.schemes);
  }
  return analysis;
}

}  // namespace normlab
