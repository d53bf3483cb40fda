// What runs of several sizes say: a law for each scheme, whether they share exponents, what larger sizes promise, and
// the critical batch size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/stats/critical_batch.h"
#include "normlab/stats/paired.h"
#include "normlab/stats/scaling_frontier.h"
#include "normlab/study/analyse/scaling_points.h"

namespace normlab {

struct SchemeFit {
  std::string scheme;
  std::vector<ScalingRun> runs;
  ScalingFit fit;
  KaplanFit kaplan;
  double flops_per_param_token = 6;  // C = this N D: the median of the runs, 6 where operations are not known
};

struct BatchFit {
  std::string scheme, size;
  double target = 0;  // loss
  std::vector<BatchPoint> points;
  LawFit<BatchLaw> fit;
};

// On the frontiers, against the first scheme, at a multiple of the largest run's operations.
struct Projection {
  size_t scheme = 0;    // index into schemes
  double multiple = 1;  // above 1: an extrapolation
  Advantage advantage;
};

// Without any law: runs of a scheme less those of the first with the same parameters and tokens, within 5 %.
struct SameSize {
  size_t scheme = 0;
  std::vector<double> differences;  // of loss
  TTest test;                       // of their mean
};

struct ScalingAnalysis {
  std::vector<SchemeFit> schemes;
  std::optional<SharedExponents> shared;  // with two schemes or more
  std::vector<Projection> projections;
  std::vector<SameSize> same_size;  // of schemes with three such pairs or more
  std::vector<BatchFit> batches;
  std::vector<std::string> notes;  // what was left out, what is doubtful
};

// DataError when nothing can be fitted, with the reason.
ScalingAnalysis analyse_scaling(const ScalingData& data, const FitOptions& options);

// The five coefficients, by the names of the command's output.
struct Coefficient {
  const char* name;
  double ScalingLaw::*member;
};
inline constexpr Coefficient coefficients[] = {{"floor", &ScalingLaw::floor},
                                               {"a_params", &ScalingLaw::a_params},
                                               {"b_tokens", &ScalingLaw::b_tokens},
                                               {"exp_params", &ScalingLaw::exp_params},
                                               {"exp_tokens", &ScalingLaw::exp_tokens}};

double run_flops(const SchemeFit& scheme, const ScalingRun& run);  // counted, or flops_per_param_token N D

}  // namespace normlab
