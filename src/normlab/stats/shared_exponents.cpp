// Do sets of points share their exponents? The shared law has theta = (log E, log A', log B' of each set, a, b).
#include <algorithm>
#include <numeric>
#include <optional>

#include "normlab/base/error.h"
#include "normlab/base/parallel.h"
#include "normlab/base/random.h"
#include "normlab/stats/scaling_model.h"

namespace normlab {
namespace {

constexpr Eigen::Index own = 3, exponents = 2;

struct Sets {
  std::vector<CentredPoints> sets;  // all centred alike, so that one A' means the same in each
  Eigen::VectorXd log_loss;         // of all, one after the other
  std::vector<Eigen::Index> first;  // place of each set's first point

  Eigen::VectorXd part(const Eigen::VectorXd& all, size_t set) const {
    return all.segment(first[set], sets[set].log_loss.size());
  }
};

Sets joined(std::span<const std::vector<ScalingPoint>> sets) {
  std::vector<ScalingPoint> all;
  for (const auto& points : sets) all.insert(all.end(), points.begin(), points.end());
  const CentredPoints together = centred(all);
  Sets out{.sets = {}, .log_loss = together.log_loss, .first = {}};
  Eigen::Index at = 0;
  for (const auto& points : sets) {
    const auto n = static_cast<Eigen::Index>(points.size());
    out.sets.push_back({together.log_n.segment(at, n), together.log_d.segment(at, n), together.log_loss.segment(at, n),
                        together.mean_log_n, together.mean_log_d});
    out.first.push_back(at);
    at += n;
  }
  return out;
}

CurveModel shared_model(const Sets& all, const std::vector<CurveModel>& models) {
  return [&](const Eigen::VectorXd& theta, Eigen::VectorXd& predicted, Eigen::MatrixXd& derivatives) {
    predicted.resize(all.log_loss.size());
    derivatives.setZero();
    for (size_t s = 0; s < models.size(); ++s) {
      const Eigen::Index at = all.first[s], n = all.sets[s].log_loss.size();
      Eigen::VectorXd inner(own + exponents), values;
      inner << theta.segment(own * static_cast<Eigen::Index>(s), own), theta.tail(exponents);
      Eigen::MatrixXd inner_derivatives(n, own + exponents);
      models[s](inner, values, inner_derivatives);
      predicted.segment(at, n) = values;
      derivatives.block(at, own * static_cast<Eigen::Index>(s), n, own) = inner_derivatives.leftCols(own);
      derivatives.block(at, derivatives.cols() - exponents, n, exponents) = inner_derivatives.rightCols(exponents);
    }
  };
}

// Objectives as sums over points, of separate fits and of the shared one.
struct Objectives {
  double separate = 0, shared = 0;
  double statistic(double n_points, double n_sets) const {
    const double saved = static_cast<double>(exponents) * (n_sets - 1);
    const double df = n_points - static_cast<double>(own + exponents) * n_sets;
    return std::max(0.0, shared - separate) / saved / (separate / df);
  }
};

CurveFit best_descent(const CurveModel& model, const Eigen::VectorXd& log_loss,
                      const std::vector<Eigen::VectorXd>& starts, double delta) {
  CurveFit best = descend(model, log_loss, starts.front(), delta);
  for (size_t i = 1; i < starts.size(); ++i)
    if (CurveFit other = descend(model, log_loss, starts[i], delta); other.objective < best.objective)
      best = std::move(other);
  return best;
}

Eigen::VectorXd inner_theta(const Eigen::VectorXd& shared, size_t set) {
  Eigen::VectorXd theta(own + exponents);
  theta << shared.segment(own * static_cast<Eigen::Index>(set), own), shared.tail(exponents);
  return theta;
}

// Each set's own coefficients with one pair of exponents: that of set `from`, or their mean.
Eigen::VectorXd shared_start(const std::vector<Eigen::VectorXd>& separate, std::optional<size_t> from) {
  const auto n = static_cast<Eigen::Index>(separate.size());
  Eigen::VectorXd theta(own * n + exponents);
  theta.tail(exponents).setZero();
  for (size_t s = 0; s < separate.size(); ++s) {
    theta.segment(own * static_cast<Eigen::Index>(s), own) = separate[s].head(own);
    if (!from) theta.tail(exponents) += separate[s].tail(exponents) / static_cast<double>(n);
  }
  if (from) theta.tail(exponents) = separate[*from].tail(exponents);
  return theta;
}

}  // namespace

SharedExponents test_shared_exponents(std::span<const std::vector<ScalingPoint>> sets, const FitOptions& options) {
  if (sets.size() < 2) throw DataError("fit", "exponents are compared between two sets of points or more; got one.");
  const Sets all = joined(sets);
  std::vector<CurveModel> models;
  for (const CentredPoints& set : all.sets) models.push_back(scaling_model(set));
  const CurveModel shared = shared_model(all, models);
  const auto n_points = static_cast<double>(all.log_loss.size()), n_sets = static_cast<double>(sets.size());

  FitOptions without_bootstrap = options;
  without_bootstrap.resamples = 0;
  std::vector<Eigen::VectorXd> separate;
  std::vector<Bootstrap> kinds;
  Eigen::VectorXd residuals(all.log_loss.size());
  for (size_t s = 0; s < sets.size(); ++s) {
    const ScalingFit fit = fit_scaling(sets[s], without_bootstrap);
    separate.push_back(scaling_theta(fit.law, all.sets[s]));
    kinds.push_back(fit.resampling.kind == Bootstrap::cases ? Bootstrap::wild : fit.resampling.kind);
    const Eigen::VectorXd &theta = separate.back(), &log_loss = all.sets[s].log_loss;
    residuals.segment(all.first[s], log_loss.size()) =
        kinds.back() == Bootstrap::wild
            ? left_out_residuals(models[s], theta, log_loss, options.delta)
            : Eigen::Map<const Eigen::VectorXd>(fit.residuals.data(), log_loss.size()).eval();
  }
  std::vector<Eigen::VectorXd> shared_starts = {shared_start(separate, std::nullopt)};
  for (size_t s = 0; s < sets.size(); ++s) shared_starts.push_back(shared_start(separate, s));

  // The same descents for the points and for every resample, so that the statistic means the same.
  const auto objectives = [&](const Eigen::VectorXd& log_loss, const std::vector<Eigen::VectorXd>& starts) {
    Objectives sums;
    const CurveFit best_shared = best_descent(shared, log_loss, starts, options.delta);
    sums.shared = best_shared.objective * n_points;
    for (size_t s = 0; s < sets.size(); ++s) {
      const Eigen::VectorXd part = all.part(log_loss, s);
      const std::vector<Eigen::VectorXd> inner = {inner_theta(best_shared.theta, s), separate[s]};
      sums.separate += best_descent(models[s], part, inner, options.delta).objective * static_cast<double>(part.size());
    }
    return std::pair(sums.statistic(n_points, n_sets), best_shared.theta);
  };
  const auto [statistic, theta] = objectives(all.log_loss, shared_starts);

  Eigen::VectorXd fitted;
  Eigen::MatrixXd derivatives(all.log_loss.size(), theta.size());
  shared(theta, fitted, derivatives);
  std::vector<char> as_large(static_cast<size_t>(options.resamples));
  for_each_index(as_large.size(), [&](size_t i) {
    Eigen::VectorXd drawn = fitted;
    for (size_t s = 0; s < sets.size(); ++s)
      drawn.segment(all.first[s], all.sets[s].log_loss.size()) +=
          resampled_noise(kinds[s], all.part(residuals, s), own + exponents, stream_key(options.seed, i, s));
    as_large[i] = objectives(drawn, {theta}).first >= statistic;
  });
  const double count = std::accumulate(as_large.begin(), as_large.end(), 0.0);
  return {.exp_params = theta[theta.size() - 2],
          .exp_tokens = theta[theta.size() - 1],
          .statistic = statistic,
          .p_value = (1 + count) / (1 + static_cast<double>(options.resamples))};
}

}  // namespace normlab
