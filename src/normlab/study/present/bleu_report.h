// BLEU in the report of a study of translators: curves, means with intervals, and tests of the translated test text.
#pragma once

#include <optional>
#include <vector>

#include "normlab/report/table.h"
#include "normlab/study/present/curve_charts.h"

namespace normlab {

extern const char* const bleu_text;

// BLEU of the development text during training; nothing for a study without BLEU.
std::optional<Figure> bleu_chart(const ChartInput& input);

// Means over the trials with paired differences to the baseline, and paired tests of each pair of test outputs.
std::vector<Table> bleu_tables(const ChartInput& input);

}  // namespace normlab
