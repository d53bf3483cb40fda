// Thinning of a study's curves, and the list of what a folder holds.
#include "normlab/serve/study_page.h"

#include <gmock/gmock.h>

#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

TEST(ThinCurves, KeepsSharedStepsLowestAndLast) {
  StudyResults results;
  for (int trial = 0; trial < 3; ++trial) {
    results.trials.emplace_back();
    for (int64_t i = 0; i < 10000 - 3000 * trial; ++i)
      results.trials.back().curve.push_back({i * 10, i == 777 + trial ? 0.5 : 2.0, 0, 0});
  }
  thin_curves(results, 500);
  for (int trial = 0; trial < 3; ++trial) {
    const auto& curve = results.trials[static_cast<size_t>(trial)].curve;
    EXPECT_LE(curve.size(), 502U);
    EXPECT_EQ(best_loss(results.trials[static_cast<size_t>(trial)]), 0.5);
    EXPECT_EQ(curve.front().step, 0);
    EXPECT_EQ(curve.back().step, 10 * (9999 - 3000 * trial));
  }
  EXPECT_EQ(results.trials[0].curve[5].step, results.trials[2].curve[5].step);
  const StudyResults before = results;
  thin_curves(results, 1000);
  EXPECT_EQ(results.trials[0].curve.size(), before.trials[0].curve.size());
}

TEST(FindFolders, ListsRunsAndStudiesButNotTheirTrials) {
  TemporaryFolder outer;
  for (const char* name :
       {"a/study/study.toml", "a/study/tuning/study.toml", "a/study/trials/x/fold00/config.toml",
        "runs/one/config.toml", "runs/one/checkpoints/step-000010/config.toml", ".hidden/run/config.toml"}) {
    fs::create_directories((outer / name).parent_path());
    write_file_atomically(outer / name, "");
  }
  fs::create_directory_symlink(outer / "runs", outer / "linked");
  const ServedFolder folder(outer.path());
  const FoundFolders found = find_folders(folder);
  std::vector<std::string> names;
  for (const auto* paths : {&found.studies, &found.runs})
    for (const fs::path& path : *paths) names.push_back(folder.relative(path));
  EXPECT_THAT(names, testing::ElementsAre("a/study", "a/study/tuning", "runs/one"));
}

}  // namespace
}  // namespace normlab
