// The file of a study: an ordinary configuration in which a list means "try each of these", [study] and [[variant]].
#pragma once

#include <string>
#include <vector>

#include "normlab/base/fields.h"
#include "normlab/study/run/ladder.h"
#include "normlab/study/run/tune.h"

namespace normlab {

// The section [study].
struct StudyConfig {
  std::string title;         // heading of the report; empty: the folder's name
  std::string baseline;      // label of the variant that the others are compared with; empty: the first
  double target_loss = 0.0;  // convergence speed is the way to this validation loss; 0: the baseline's final one
};
void list_fields(StudyConfig& config, FieldList& list);

// One [[variant]]: a label and what it sets.
struct NamedSettings {
  std::string label;
  std::vector<Setting> settings;
};

// What the files and --set of a study say, merged: later settings have replaced earlier ones of the same key.
struct StudySpec {
  StudyConfig study;
  TuneConfig tune = {};                 // [study.tune]
  std::vector<Setting> settings;        // keys of a run's configuration in its order; lists are axes
  std::vector<Setting> ladder;          // the section [ladder]; empty: there is none
  std::vector<NamedSettings> variants;  // in the order of the file
  std::string version;                  // of the normlab that wrote it; empty for a file of the user's
};
StudySpec read_study(const std::vector<Setting>& settings);

// DIR/study.toml; reads back to the same study.
std::string to_toml(const StudySpec& spec);

}  // namespace normlab
