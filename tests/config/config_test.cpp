#include "normlab/config/config.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"

namespace normlab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

LoadedConfig load(std::initializer_list<const char*> settings) {
  std::vector<Setting> list;
  for (const char* setting : settings) list.push_back(parse_setting(setting));
  return resolve_config(list);
}

TEST(Config, OverridesActOnTheSchemesRow) {
  const Config config = load({"norm.p=2.5", "norm.scheme=lp", "norm.gain=head"}).config;  // in any order
  EXPECT_EQ(config.norm.qk, QkNorm::lp);
  EXPECT_EQ(config.norm.p, 2.5);
  EXPECT_EQ(config.norm.gain, GainSharing::head);
  EXPECT_EQ(config.norm.gain_init.text(), "log2(L^2-L)");
}

TEST(Config, ResolvedTomlReadsBackToItself) {
  for (const NormScheme& row : catalogue()) {
    const Config config = load({("norm.scheme=" + row.name).c_str(), "model.d_ff=100", "norm.p=inf"}).config;
    EXPECT_EQ(to_toml(resolve_config(parse_toml(to_toml(config), "saved")).config), to_toml(config)) << row.name;
  }
}

TEST(Config, DerivedValuesAreFilledIn) {
  const Config config = load({"model.d_model=64", "model.n_heads=4", "train.max_steps=77"}).config;
  EXPECT_EQ(config.model.d_head, 16);
  EXPECT_EQ(config.model.n_kv_heads, 4);
  EXPECT_EQ(config.model.d_ff, 256);
  EXPECT_EQ(config.optim.decay_steps, 77);
  EXPECT_EQ(config.model.kernels, Kernels::fused);
}

TEST(Config, KernelsAreChosenInOnePlace) {
  EXPECT_EQ(load({"norm.scheme=lp", "norm.scope=all_heads"}).config.model.kernels, Kernels::composite);
  const auto channel_gain = [](const char* order) {
    return load({"norm.scheme=lp", "norm.gain=channel", "model.positions=rope", order}).config.model.kernels;
  };
  EXPECT_EQ(channel_gain("norm.order=before_rope"), Kernels::composite);
  EXPECT_EQ(channel_gain("norm.order=after_rope"), Kernels::fused);
  EXPECT_THAT(
      [] {
        load({"norm.scheme=lp", "norm.scope=all_heads", "model.kernels=fused"});
      },
      ThrowsMessage<UsageError>(HasSubstr("all_heads")));
  EXPECT_EQ(load({"model.kernels=composite"}).config.model.kernels, Kernels::composite);
}

TEST(Config, OnlyHarmlessKeysMayChangeInARun) {
  const Config run = load({"norm.scheme=lp"}).config;
  Config other = run;
  other.train.max_steps = 9;
  other.train.threads = 3;
  EXPECT_NO_THROW(require_same_run(run, other));
  other.norm.p = 4;
  EXPECT_THAT([&] { require_same_run(run, other); },
              ThrowsMessage<UsageError>(HasSubstr("norm.p is 3 there and 4 here")));
  other = run;
  other.optim.gain_lr = 30;
  EXPECT_THAT([&] { require_same_run(run, other); },
              ThrowsMessage<UsageError>(HasSubstr("optim.gain_lr is 1 there and 30 here")));
}

}  // namespace
}  // namespace normlab
