#include "normlab/study/run/study_folder.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Plan plan_in(const std::filesystem::path& folder, const char* setting = "model.dropout=[0.1,0.2]") {
  StudySpec spec = read_study({parse_setting(setting)});
  spec.version = NORMLAB_VERSION;
  return make_plan(spec, folder);
}

TEST(StudyFolder, StoresThePlanAndIsTakenOnce) {
  const TemporaryFolder folder;
  const Plan plan = plan_in(folder / "a/b");
  {
    const FolderLock lock = take_study_folder(plan, "");
    EXPECT_EQ(read_file(folder / "a/b/study.toml"), to_toml(plan.spec));
    EXPECT_THAT([&] { take_study_folder(plan, ""); }, ThrowsMessage<Error>(HasSubstr("another process")));
  }
  const FolderLock again = take_study_folder(plan_in(folder / "a/b", "model.dropout=[0.1,0.2,0.3]"), "");
  EXPECT_EQ(load_plan(folder / "a/b").variants.size(), 3u);
}

TEST(StudyFolder, OtherThingsAreLeftAlone) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "thesis.txt", "years");
  EXPECT_THAT([&] { take_study_folder(plan_in(folder.path()), ""); },
              ThrowsMessage<UsageError>(HasSubstr("not empty")));
  EXPECT_THAT([&] { take_study_folder(plan_in(folder / "thesis.txt"), ""); },
              ThrowsMessage<UsageError>(HasSubstr("is a file")));
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST(StudyFolder, RefusalsChangeNothing) {
  const TemporaryFolder folder;
  const Plan plan = plan_in(folder.path());
  { const FolderLock lock = take_study_folder(plan, ""); }
  const Trial& trial = plan.trials[0];
  std::filesystem::create_directories(trial.folder);
  write_file_atomically(trial.folder / "config.toml", to_toml(trial.config));
  const std::string before = read_file(folder / "study.toml");

  StudySpec spec = plan.spec;
  spec.settings.push_back(parse_setting("optim.lr=0.5"));
  EXPECT_THAT([&] { take_study_folder(make_plan(spec, folder.path()), ""); },
              ThrowsMessage<UsageError>(HasSubstr("optim.lr is 0.001 there and 0.5")));
  write_file_atomically(trial.folder / "metrics.jsonl", "{\"step\":1}\n");
  write_file_atomically(trial.folder / "trial.json",
                        "{\"outcome\":\"finished\",\"step\":1,\"parameters\":1,\"train_seconds\":1,"
                        "\"train_cpu_seconds\":1,\"data_sha256\":\"text\"}");
  EXPECT_NO_THROW(take_study_folder(plan, "text"));
  EXPECT_THAT([&] { take_study_folder(plan, "other"); }, ThrowsMessage<DataError>(HasSubstr("text has changed")));
  EXPECT_EQ(read_file(folder / "study.toml"), before);
}

}  // namespace
}  // namespace normlab
