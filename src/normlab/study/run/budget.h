// A study without a recipe: a few schemes on the user's text, as large as a given time allows on this machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/config/config.h"
#include "normlab/study/run/study_config.h"

namespace normlab {

// "90s", "15m", "2h" or "1h30m" in seconds; nothing for any other text, or for no time at all.
std::optional<double> parse_duration(std::string_view text);

struct Budget {
  std::string source;  // a text file, or the name of a data set
  double seconds = 0.0;
  int jobs = 1;                           // trials in parallel
  std::vector<std::string> schemes = {};  // rows of the catalogue; empty: none, qknorm, lp and rms
};

// Operations per second of one of `jobs` trials like this one, measured.
using MeasureSpeed = std::function<double(const Config& config, int vocab_size)>;

// Every variant gets three learning rates to choose from and three folds. The model is the largest of a fixed ladder
// that sees at least two tokens per parameter in its share of the time; no text is read more than ten times.
// UsageError when the time is too short for the smallest model, or a scheme is unknown.
StudySpec budget_study(const Budget& budget, const MeasureSpeed& measure);

}  // namespace normlab
