// CSV points of scaling fits: every run that is accepted has finite, positive numbers.
#include <cmath>

#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/study/analyse/scaling_points.h"

namespace normlab {

void fuzz_points(const uint8_t* bytes, size_t size) {
  const MemoryFile file(text_of(bytes, size));
  ScalingData data;
  accepts([&] { add_points(data, file.path()); });
  for (const ScalingRun& run : data.runs)
    for (const double value : {run.n_params, run.n_tokens, run.loss})
      require(std::isfinite(value) && value > 0, "the numbers of a point are finite and positive");
}

}  // namespace normlab
