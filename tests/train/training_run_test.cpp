// A training follows the requests of its own caller only.
#include "normlab/train/training_run.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/train/evaluate.h"
#include "normlab/train/session.h"
#include "sandbox.h"

namespace normlab {
namespace {

class Requests : public testing::Test {
 protected:
  Requests() {
    at::set_num_threads(1);  // steps are so small that a second thread would only be waited for
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the king spoke to his men\nand they went home in silence\n";
    write_file_atomically(folder_ / "text.txt", text);
  }
  ~Requests() override { at::set_num_threads(threads_); }

  std::unique_ptr<TrainingRun> training(const std::string& name, bool resuming = false) const {
    std::vector<Setting> settings;
    for (const std::string& each :
         {concat("data.source=", (folder_ / "text.txt").string()), std::string("norm.scheme=lp"),
          std::string("train.max_steps=12"), std::string("model.n_layers=1"), std::string("model.n_heads=2"),
          std::string("model.d_model=16"), std::string("model.seq_len=16"), std::string("train.batch_size=2"),
          std::string("train.eval_every=6"), std::string("train.eval_windows=2"), std::string("train.keep_last=9")})
      settings.push_back(parse_setting(each));
    return open_session({.config = resolve_config(settings).config,
                         .folder = folder_ / name,
                         .resuming = resuming,
                         .command = {"test"}});
  }

  std::vector<int64_t> checkpoints(const std::string& name) const {
    std::vector<int64_t> steps;
    for (const Checkpoint& each : RunDir::open(folder_ / name).checkpoints()) steps.push_back(each.step);
    return steps;
  }

  int threads_ = at::get_num_threads();
  TemporaryFolder folder_;
};

TEST_F(Requests, ATrainingStopsWhileAnotherGoesOn) {
  std::atomic<bool> stop = false;
  Outcome stopped = Outcome::finished, whole = Outcome::interrupted;
  std::thread first([&] {
    stopped = training("stopped")->run(
        {.show = [&](const Progress& progress) { stop = progress.step == 4; }, .stop = [&] { return stop.load(); }});
  });
  std::thread second([&] { whole = training("whole")->run(); });
  first.join();
  second.join();
  EXPECT_EQ(stopped, Outcome::interrupted);
  EXPECT_EQ(whole, Outcome::finished);
  EXPECT_EQ(checkpoints("stopped").back(), 4);
  EXPECT_EQ(checkpoints("whole").back(), 12);

  const auto resumed = training("stopped", /*resuming=*/true);
  EXPECT_EQ(resumed->state().step, 4);
  EXPECT_EQ(resumed->run(), Outcome::finished);
  EXPECT_EQ(resumed->state().val_loss, training("whole", true)->state().val_loss);
}

TEST_F(Requests, AnEvaluationCanBeStopped) {
  int asked = 0;
  const auto run = training("run");  // it starts with an evaluation: of one batch, then the loop asks once
  EXPECT_EQ(run->run({.stop = [&] { return ++asked > 0; }}), Outcome::interrupted);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(run->state().last_eval, -1);
}

TEST_F(Requests, ACheckpointIsWrittenOnRequest) {
  int64_t step = 0;
  const Outcome outcome = training("run")->run({.show = [&](const Progress& progress) { step = progress.step; },
                                                .take_save_request = [&] { return step == 3; }});
  EXPECT_EQ(outcome, Outcome::finished);
  EXPECT_EQ(checkpoints("run"), (std::vector<int64_t>{0, 3, 6, 12}));
}

}  // namespace
}  // namespace normlab
