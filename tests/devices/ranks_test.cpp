// Ranks whose model is on a device: sums and copies go through memory of the host.
#include <gtest/gtest.h>

#include "devices/device_runs.h"
#include "normlab/models/device.h"
#include "normlab/train/stepper.h"
#include "train/thread_ranks.h"

namespace normlab {
namespace {

class DeviceRanks : public DeviceRuns {};

TEST_F(DeviceRanks, ComputeWhatTheCpuComputes) {
  const torch::Tensor text = torch::arange(4 * 17, torch::kInt64).mul(7).remainder(20).view({4, 17});
  for (const char* optimizer : {"adamw", "muon"}) {
    const auto losses = [&](const std::string& device, RankGroup* ranks) {
      const Config config = *config_of(device, {"norm.scheme=lp", concat("optim.optimizer=", optimizer)});
      Stepper stepper(DecoderLm(config.model, config.norm, 20, 1, tensor_options(config)),
                      optimizer_settings(config.optim));
      if (ranks) stepper.share_with(*ranks, /*shard=*/true);
      const Batch batch{text.slice(1, 0, 16).contiguous(), text.slice(1, 1).contiguous()};
      std::vector<double> list;
      for (int64_t step = 0; step < 4; ++step)
        list.push_back(stepper.step({batch}, {.training = true, .seed = 1, .step = step}, 1e-2, 1.0).loss);
      return list;
    };
    const std::vector<double> expected = losses("cpu", nullptr);
    std::vector<std::vector<double>> found(2);
    on_ranks(2, [&](RankGroup& ranks) { found[static_cast<size_t>(ranks.rank())] = losses(simulated_device, &ranks); });
    EXPECT_EQ(found[0], found[1]);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[0][i], expected[i], 1e-5);
  }
}

}  // namespace
}  // namespace normlab
