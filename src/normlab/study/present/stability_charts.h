// The stability of a study's variants as charts: loss against learning rate, logits and entropy of attention.
#pragma once

#include <string>
#include <vector>

#include "normlab/study/present/curve_charts.h"

namespace normlab {

// The learning-rate sensitivity of one value of the other dimension, over the trials of one fold and seed each that
// have ended at every rate.
struct Sensitivity {
  std::string label;           // "qknorm"
  std::vector<double> values;  // one for each fold and seed
};
// Empty unless the study varies optim.lr, alone or crossed with one other dimension.
std::vector<Sensitivity> sensitivities(const StudyResults& results, const Grid& grid);

// In this order, those for which there is something to draw: loss against learning rate; largest logit and entropy over
// time; largest logit at the end against a number that the study varies, such as depth or rate.
std::vector<Figure> stability_charts(const ChartInput& input);

}  // namespace normlab
