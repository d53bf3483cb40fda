// The points of a scaling fit: runs of several sizes and horizons, from studies or from a table of anybody's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/stats/convergence.h"
#include "normlab/study/analyse/results.h"

namespace normlab {

struct ScalingRun {
  std::string scheme;  // what is fitted together
  std::string size;    // what it shares with runs that differ only in learning rate and batch size
  double n_params = 0, n_tokens = 0, loss = 0;
  double flops = 0;                    // of its training steps; 0: not known
  double batch = 0;                    // tokens per step; 0: not known
  double lr = 0;                       // 0: not known
  std::vector<CurvePoint> curve = {};  // validation loss over steps, the mean over folds and seeds
};

struct ScalingData {
  std::vector<ScalingRun> runs;
  std::vector<std::string> notes;  // what was left out and why
};

enum class CountedParams { total, body };

// One run per variant: means over its finished folds and seeds. Diverged and missing trials are left out and noted.
void add_study(ScalingData& data, const StudyResults& results, CountedParams counted);

// A CSV file with the columns n_params, n_tokens, loss, and if it likes scheme and flops; others are ignored. Rows
// whose loss is not finite are left out and noted; DataError with the line for everything else that is wrong.
void add_points(ScalingData& data, const std::filesystem::path& file);

// The best learning rate and batch of each size, by final loss; the others are noted.
ScalingData best_of_grids(ScalingData data);

}  // namespace normlab
