// Words of a study: its title, how far it is, its trials, how it is repeated, what ran it.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "normlab/study/analyse/analysis.h"

namespace normlab {

inline constexpr const char* dash = "\xE2\x80\x93";  // in a cell without a value
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
std::optional<double> median_if_any(const std::vector<double>& values);  // the median, if any

std::string p_text(double p_value);                   // "0.004" or "below 0.001"
std::string interval_name(const Analysis& analysis);  // "95 % interval", adjusted where there are several
std::string bound_sign(const SpeedUp& speed);         // before its factor, such as "≤ "

std::string title_of(const Plan& plan);
std::string subtitle_of(const StudyResults& results);
std::string setup_text(const StudyResults& results);     // schemes, sizes, steps, text and machine, in a line
std::string progress_text(const StudyResults& results);  // "3 of 12 trials finished, 9 missing"
std::string trial_name(const StudyResults& results, const TrialResult& trial);  // "p = 3, fold 2"
std::string spoken_label(const StudyResults& results, size_t variant);          // "p = 3 with gain_init = matched"

std::string commands(const StudyResults& results, const Analysis& analysis);  // that repeat study and report
std::vector<std::string> provenance_lines(const Provenance& provenance);

}  // namespace normlab
