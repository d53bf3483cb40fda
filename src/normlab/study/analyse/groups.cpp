// Groups of a grid of two dimensions.
#include "normlab/study/analyse/groups.h"

namespace normlab {

std::vector<Group> groups_of(const StudyResults& results, const Grid& grid, const GridStyles& styles,
                             const Analysis& whole) {
  std::vector<Group> groups;
  if (grid.dimensions.size() != 2) return groups;
  const size_t along = styles.series, across = 1 - along;
  for (size_t value = 0; value < grid.dimensions[across].values.size(); ++value) {
    AnalysisOptions options{.baseline = {}, .target = whole.target};
    for (size_t i = 0; i < grid.places.size(); ++i) {
      if (grid.places[i][across] != value) continue;
      options.only.push_back(i);
      if (grid.places[i][along] == grid.places[whole.baseline][along])
        options.baseline = results.plan.variants[i].label;
    }
    groups.push_back({grid.dimensions[across].label(value), analyse(results, options)});
  }
  return groups;
}

}  // namespace normlab
