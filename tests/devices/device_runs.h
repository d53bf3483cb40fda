// Tiny runs of every kind on a device of choice, and their records as numbers.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "devices/simulated_device.h"
#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/record/metrics.h"
#include "normlab/train/session.h"
#include "sandbox.h"

namespace normlab {

using Words = std::vector<std::string>;
using Figures = std::map<std::string, double>;  // "4 val_loss"

// Of operators that another implementation computes: scaled_dot_product_attention and layer_norm, which have other
// orders of summation on the simulated device; everything else has the CPU's bits. Losses are about 3, float32 has 7
// digits, and a few steps of Adam let a difference grow.
constexpr double rounding = 1e-4;

class DeviceRuns : public testing::Test {
 protected:
  DeviceRuns() {
    at::set_num_threads(1);  // every operator is tiny
    std::string text, sources, targets;
    for (int i = 0; i < 30; ++i) {
      text += concat("the king spoke to ", i, " of his men\nand they went home in silence\n");
      sources += concat("o rei, falou ", i % 7, "; aos homes\n");
      targets += concat("the king, spoke ", i % 7, "; to the men\n");
    }
    write_file_atomically(folder_ / "text.txt", text);
    for (const char* part : {"train", "dev", "test"}) {
      write_file_atomically(folder_ / concat(part, ".gl"),
                            part[0] == 't' && part[1] == 'r' ? sources : "o rei, falou 3\n");
      write_file_atomically(folder_ / concat(part, ".en"),
                            part[0] == 't' && part[1] == 'r' ? targets : "the king, spoke 3\n");
    }
  }
  ~DeviceRuns() override { at::set_num_threads(threads_); }

  // Nothing where a scheme does not go with the settings.
  std::optional<Config> config_of(const std::string& device, const Words& settings, bool translator = false) const {
    Words all = {"model.n_layers=2",      "model.n_heads=2",      "model.d_model=16",    "model.seq_len=16",
                 "model.mlp_dropout=0.1", "train.max_steps=4",    "optim.decay_steps=4", "train.eval_every=2",
                 "train.log_every=1",     "optim.warmup_steps=2", "optim.lr=0.01",       "optim.min_lr=0.001",
                 "train.threads=1",       "probe.every=2",        "train.keep_last=3"};
    if (translator)
      all.insert(all.end(), {"translation.source=gl", "translation.target=en", "translation.bpe_operations=20",
                             "translation.batch_tokens=60", "translation.beam=2", "model.seq_len=32",
                             "train.max_steps=2", "train.eval_every=1"});
    else
      all.insert(all.end(), {"train.batch_size=2", "train.eval_windows=3"});
    all.push_back(concat("data.source=", (translator ? folder_.path() : folder_ / "text.txt").string()));
    all.push_back("model.kernels=composite");
    all.push_back(concat("train.device=", device));
    all.insert(all.end(), settings.begin(), settings.end());
    std::vector<Setting> parsed;
    for (const std::string& each : all) parsed.push_back(parse_setting(each));
    try {
      return resolve_config(parsed).config;
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }

  std::unique_ptr<TrainingRun> open(const Config& config, const std::string& name, bool resuming = false) const {
    return open_session({.config = config, .folder = folder_ / name, .resuming = resuming, .command = {"test"}});
  }

  // Every number of metrics.jsonl but times.
  Figures records(const std::string& name) const {
    Figures found;
    for (const auto& row : MetricsLog::read(folder_ / name / "metrics.jsonl"))
      for (const auto& [key, value] : row.items())
        if (value.is_number() && key.find("second") == std::string::npos && key != "time")
          found[concat(row["step"].dump(), " ", key)] = value.get<double>();
    return found;
  }

  Figures train(const Config& config, const std::string& name, bool resuming = false) const {
    open(config, name, resuming)->run();
    return records(name);
  }

  // The same with a stop halfway.
  Figures train_twice(Config config, const std::string& name) const {
    const int64_t last = std::exchange(config.train.max_steps, config.train.max_steps / 2);
    train(config, name);
    config.train.max_steps = last;
    return train(config, name, /*resuming=*/true);
  }

  static void expect_close(const Figures& expected, const Figures& got, double tolerance = rounding) {
    EXPECT_EQ(expected.size(), got.size());
    for (const auto& [name, value] : expected) {
      const auto found = got.find(name);
      ASSERT_NE(found, got.end()) << name;
      EXPECT_NEAR(value, found->second, tolerance * std::max(1.0, std::abs(value))) << name;
    }
  }

  TemporaryFolder folder_;

 private:
  int threads_ = at::get_num_threads();
};

}  // namespace normlab
