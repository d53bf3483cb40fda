// The charts of a run's page, from its metrics.
#pragma once

#include <filesystem>
#include <vector>

#include "normlab/report/html.h"

namespace normlab {

struct RunCharts {
  Html losses;                    // training and validation loss
  std::vector<Html> steps;        // learning rate, gradient norm, speed
  std::vector<Html> diagnostics;  // of the probes, one curve per layer
};
RunCharts draw_run(const std::filesystem::path& metrics);

}  // namespace normlab
