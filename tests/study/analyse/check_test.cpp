// Checks of runs, checkpoints and files: a whole one has no fault, and each kind of damage has its words.
#include "normlab/study/analyse/check.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/config/config.h"
#include "normlab/record/checksums.h"
#include "normlab/record/safetensors.h"
#include "sandbox.h"
#include "study/sample_study.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

void write_weights(const fs::path& path, float value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  write_safetensors(path, std::vector<TensorView>{{"weight", Dtype::f32, {1}, bytes, sizeof value}}, {});
}

// A run of 20 steps with checkpoints at 10 and 20, and rows of every step.
class CheckRun : public testing::Test {
 protected:
  CheckRun() {
    const std::string config = to_toml(resolve_config({}).config) + "";
    fs::create_directories(run_);
    write("config.toml", replace_all(config, "log_every = 10\n", "log_every = 1\n"));
    write("manifest.json", "{\"sessions\": []}");
    std::string rows;
    for (int step = 1; step <= 20; ++step) rows += concat("{\"step\":", step, ",\"loss\":1.5}\n");
    write("metrics.jsonl", rows);
    for (const char* name : {"step-000010", "step-000020"}) {
      const fs::path folder = run_ / "checkpoints" / name;
      fs::create_directories(folder);
      write_weights(folder / "model.safetensors", 1.F);
      write_weights(folder / "optimizer.safetensors", 2.F);
      write_file_atomically(folder / "tokenizer.json", "{}");
      fs::copy_file(run_ / "config.toml", folder / "config.toml");
      nlohmann::json state = {{"step", std::string(name) == "step-000010" ? 10 : 20}, {"last_eval", 10}};
      seal(state);
      write_file_atomically(folder / "state.json", state.dump(2));
      write_checksums(folder);
    }
    fs::create_directory_symlink("step-000020", run_ / "checkpoints/latest");
    fs::create_directory_symlink("step-000010", run_ / "checkpoints/best");
  }
  void write(const fs::path& name, const std::string& content) { write_file_atomically(run_ / name, content); }
  std::string read(const fs::path& name) { return read_file(run_ / name); }
  std::vector<std::string> faults() { return check_path(run_).faults; }

  TemporaryFolder folder_;
  const fs::path run_ = folder_ / "run";
  const fs::path last_ = "checkpoints/step-000020";
};

TEST_F(CheckRun, AWholeRunHasNoFault) {
  EXPECT_THAT(faults(), IsEmpty());
  EXPECT_THAT(check_path(run_).seen, testing::ElementsAre("2 checkpoints", "20 rows of metrics"));
  EXPECT_THAT(check_path(run_ / last_).faults, IsEmpty());
  fs::remove(run_ / last_ / "optimizer.safetensors");  // as a trial does when it ends
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(CheckRun, AFlippedBitIsNamed) {
  for (const char* name : {"model.safetensors", "tokenizer.json"}) {
    const std::string good = read(last_ / name);
    std::string bad = good;
    bad.back() ^= name[0] == 'm' ? 1 : ' ' ^ '}';
    write(last_ / name, bad);
    EXPECT_THAT(faults(), Contains(HasSubstr(concat(name, " has changed")))) << name;
    write(last_ / name, good);
  }
}

TEST_F(CheckRun, StatesAreChecked) {
  const auto with = [&](nlohmann::json state) {
    seal(state);
    write(last_ / "state.json", state.dump());
    return faults();
  };
  EXPECT_THAT(with({{"step", 10}}), Contains(HasSubstr("is of step 10, but its folder of step 20")));
  EXPECT_THAT(with({{"step", -1}}), Contains(HasSubstr("no step")));
  EXPECT_THAT(with({{"step", 20}, {"last_eval", 1LL << 62}}), Contains(HasSubstr("cannot be")));
  write(last_ / "state.json", "{\"step\": 20, \"sha256\": \"0\"}");
  EXPECT_THAT(faults(), Contains(HasSubstr("has changed")));
  write(last_ / "state.json", std::string(300'000, '['));
  EXPECT_THAT(faults(), Contains(HasSubstr("not a JSON object")));
  fs::remove(run_ / last_ / "state.json");
  EXPECT_THAT(faults(), Contains(HasSubstr("lacks state.json")));
}

TEST_F(CheckRun, RowsAreChecked) {
  const std::string good = read("metrics.jsonl");
  const auto without = [&](int step) { return replace_all(good, concat("{\"step\":", step, ",\"loss\":1.5}\n"), ""); };
  write("metrics.jsonl", without(7));
  EXPECT_THAT(faults(), Contains(HasSubstr("lacks rows between the steps 6 and 8")));
  write("metrics.jsonl", without(20));
  EXPECT_THAT(faults(), Contains(HasSubstr("ends at step 19, before the newest checkpoint, of step 20")));
  write("metrics.jsonl", good + "{\"step\":20,\"loss\":1.5}\n");
  EXPECT_THAT(faults(), Contains(HasSubstr("two training rows of step 20")));
  write("metrics.jsonl", good + "{\"step\":19,\"val_loss\":1.5}\n");
  EXPECT_THAT(faults(), Contains(HasSubstr("step 19 after one of step 20")));
  write("metrics.jsonl", "nonsense\n" + good);
  EXPECT_THAT(faults(), Contains(HasSubstr("line 1")));
  fs::remove(run_ / "metrics.jsonl");
  EXPECT_THAT(faults(), Contains(HasSubstr("is missing")));
}

// The checkpoint counts the rows, so nothing is guessed from train.log_every, which may change at a resume.
TEST_F(CheckRun, RowsAreCounted) {
  const auto count = [&](int rows) {
    nlohmann::json state = {{"step", 20}, {"last_eval", 20}, {"metrics_rows", rows}};
    seal(state);
    write(last_ / "state.json", state.dump());
  };
  std::string rows;
  for (const int step : {5, 10, 11, 12, 20}) rows += concat("{\"step\":", step, ",\"loss\":1.5}\n");
  write("metrics.jsonl", rows);
  count(5);
  EXPECT_THAT(faults(), IsEmpty());
  write("metrics.jsonl", rows + "{\"step\":21,\"loss\":1.5}\n{\"step\":23,\"loss\":1.5}\n");  // of this session
  EXPECT_THAT(faults(), testing::ElementsAre(HasSubstr("lacks rows between the steps 21 and 23")));
  write("metrics.jsonl", rows);
  count(6);
  EXPECT_THAT(faults(), Contains(HasSubstr("has 5 of the 6 rows")));
  write("metrics.jsonl", rows + "{\"step\":20,\"val_loss\":1.5}\n");
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(CheckRun, LostCheckpointsAreNoticed) {
  fs::rename(run_ / "checkpoints", folder_ / "moved");
  EXPECT_THAT(faults(), testing::ElementsAre(HasSubstr("holds no checkpoint, though metrics.jsonl has rows")));
  write("checkpoints", "");
  EXPECT_THAT(faults(), testing::ElementsAre(HasSubstr("is not a folder")));
}

TEST_F(CheckRun, WhatIsSetAsideIsSeen) {
  fs::create_directory(run_ / "checkpoints/damaged-step-000030");
  EXPECT_THAT(faults(), IsEmpty());
  EXPECT_THAT(check_path(run_).seen, Contains("1 set aside"));
}

TEST_F(CheckRun, LinksAreChecked) {
  const auto link = [&](const char* name, const char* target) {
    fs::remove(run_ / "checkpoints" / name);
    fs::create_directory_symlink(target, run_ / "checkpoints" / name);
    return faults();
  };
  EXPECT_THAT(link("best", "step-000015"), Contains(HasSubstr("not a checkpoint of this run")));
  EXPECT_THAT(link("best", "../../elsewhere"), Contains(HasSubstr("not a checkpoint of this run")));
  link("best", "step-000010");
  EXPECT_THAT(link("latest", "step-000010"), Contains(HasSubstr("the newest checkpoint is of step 20")));
  fs::remove(run_ / "checkpoints/latest");
  EXPECT_THAT(faults(), Contains(HasSubstr("no link 'latest'")));
}

TEST_F(CheckRun, ConfigurationsAreChecked) {
  const std::string good = read("config.toml");
  write("config.toml", replace_all(good, "n_layers = 6", "n_layers = 7"));
  EXPECT_THAT(faults(), Contains(HasSubstr("model.n_layers")));
  write("config.toml", good + "x = 1\n");
  EXPECT_THAT(faults(), Contains(HasSubstr("unknown key")));
  write("config.toml", good);
  write("manifest.json", "[]");
  EXPECT_THAT(faults(), Contains(HasSubstr("manifest of a run")));
}

TEST_F(CheckRun, SingleFiles) {
  write_weights(run_ / "nan.safetensors", std::nanf(""));
  EXPECT_THAT(check_path(run_ / "nan.safetensors").faults, Contains(HasSubstr("'weight' has 1 values that are not")));
  EXPECT_THAT(check_path(run_ / last_ / "model.safetensors").faults, IsEmpty());
  write("broken.toml", "a = = 1");
  EXPECT_THAT(check_path(run_ / "broken.toml").faults, Contains(HasSubstr("broken.toml:1")));
  write("broken.json", "{");
  EXPECT_THAT(check_path(run_ / "broken.json").faults, Contains(HasSubstr("is not JSON")));
  write("notes.txt", "x");
  EXPECT_THROW(check_path(run_ / "notes.txt"), DataError);
  EXPECT_THROW(check_path(run_ / "missing"), DataError);
}

TEST(CheckStudy, TrialsAreChecked) {
  TemporaryFolder folder;
  const Plan plan = sample_plan("p = [2, 3]\n[data]\nfold = [0, 1]\n", folder.path());
  write_file_atomically(folder / "study.toml", to_toml(plan.spec));
  EXPECT_THAT(check_path(folder.path()).faults, IsEmpty());
  EXPECT_THAT(check_path(folder.path()).seen, testing::ElementsAre("4 trials, 0 of them ended"));
  fs::create_directories(plan.trials[1].folder);
  write_file_atomically(plan.trials[1].folder / "config.toml", "nonsense");
  EXPECT_THAT(check_path(folder.path()).faults, Contains(HasSubstr(plan.trials[1].folder.string())));
}

}  // namespace
}  // namespace normlab
