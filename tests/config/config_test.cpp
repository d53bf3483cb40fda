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
    const Config config = load({("norm.scheme=" + row.name).c_str(), "model.d_ff=100", "optim.clip=1e30"}).config;
    EXPECT_EQ(to_toml(resolve_config(parse_toml(to_toml(config), "saved")).config), to_toml(config)) << row.name;
  }
}

TEST(Config, LayersThatSeeAllKeysAreTheLastOfEachPattern) {
  const ModelConfig gemma3 = load({"model.window=512", "model.global_every=6", "model.n_layers=7"}).config.model;
  std::vector<int> windows;
  for (int layer = 0; layer < 7; ++layer) windows.push_back(window_of_layer(gemma3, layer));
  EXPECT_EQ(windows, (std::vector<int>{512, 512, 512, 512, 512, 0, 512}));
  EXPECT_EQ(window_of_layer(load({"model.window=3"}).config.model, 5), 3);
  EXPECT_THAT(
      [] {
        load({"model.window=3", "model.global_every=1"});
      },
      ThrowsMessage<UsageError>(HasSubstr("expected 0 or 2 and above")));
  EXPECT_THAT([] { load({"model.global_every=2"}); }, ThrowsMessage<UsageError>(HasSubstr("model.window")));
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

TEST(Config, Bfloat16IsForCompositeKernelsAndFloat16IsRefused) {
  const LoadedConfig loaded = load({"train.dtype=bfloat16"});
  EXPECT_EQ(loaded.config.model.dtype, Precision::bfloat16);
  EXPECT_EQ(loaded.config.model.kernels, Kernels::composite);
  EXPECT_THAT(loaded.notes, testing::Contains(HasSubstr("train.dtype is bfloat16")));
  EXPECT_THAT(to_toml(loaded.config), HasSubstr("dtype = \"bfloat16\""));
  const auto refusal = [](std::initializer_list<const char*> settings, const char* reason) {
    EXPECT_THAT([&] { load(settings); }, ThrowsMessage<UsageError>(HasSubstr(reason)));
  };
  refusal({"train.dtype=bfloat16", "model.kernels=fused"}, "train.dtype is bfloat16");
  refusal({"train.dtype=float16"}, "65504");
  refusal({"train.dtype=float64"}, "expected one of float32, bfloat16");
}

TEST(Config, KernelsDependOnTheDevice) {
  EXPECT_EQ(load({"train.device=auto"}).config.model.kernels, Kernels::fused);
  EXPECT_EQ(load({"train.device=cpu"}).config.model.kernels, Kernels::fused);
  EXPECT_EQ(load({"train.device=cuda:1"}).config.model.kernels, Kernels::composite);
  EXPECT_THAT(
      [] {
        load({"train.device=cuda", "model.kernels=fused"});
      },
      ThrowsMessage<UsageError>(HasSubstr("train.device is cuda")));
  for (const char* bad : {"train.device=gpu", "train.device=cuda:", "train.device=cuda:x", "train.device=cuda:100"})
    EXPECT_THAT([&] { load({bad}); }, ThrowsMessage<UsageError>(HasSubstr("expected auto, cpu, cuda or cuda:N")));
  // A run that goes on elsewhere has its kernels chosen again; what is asked for now is not overridden.
  const auto resumed = [](std::initializer_list<const char*> now) {
    std::vector<Setting> settings = optional_settings(parse_toml(to_toml(load({"train.device=cpu"}).config), "run"));
    for (const char* setting : now) settings.push_back(parse_setting(setting));
    return resolve_config(settings).config.model.kernels;
  };
  EXPECT_EQ(resumed({"train.device=cuda"}), Kernels::composite);
  EXPECT_EQ(resumed({"train.device=cpu"}), Kernels::fused);
  EXPECT_THAT(
      [&] {
        resumed({"train.device=cuda", "model.kernels=fused"});
      },
      ThrowsMessage<UsageError>(HasSubstr("train.device is cuda")));
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

std::string refusal(std::initializer_list<const char*> settings) {
  try {
    load(settings);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Config, ASettingThatNothingReadsIsRefusedWithWhatWouldMakeItCount) {
  const std::string message = refusal({"norm.p=3"});
  EXPECT_THAT(message, HasSubstr("[--set] norm.p = 3 has no effect"));
  EXPECT_THAT(message, HasSubstr("norm.qk is lp"));
  EXPECT_THAT(message, HasSubstr("here norm.qk is none"));
  EXPECT_THAT(message, HasSubstr("qknorm, lp, cosine"));
  EXPECT_THAT(refusal({"norm.gain_init=2"}), HasSubstr("norm.gain is not none"));
  EXPECT_THAT(refusal({"norm.scheme=lp", "norm.order=after_rope"}), HasSubstr("model.positions is rope"));
  EXPECT_THAT(refusal({"norm.scheme=qknorm", "model.positions=rope", "norm.order=after_rope"}), HasSubstr("norm.p"));
  EXPECT_THAT(refusal({"optim.schedule=constant", "optim.min_lr=0"}), HasSubstr("optim.schedule is not constant"));
  EXPECT_THAT(refusal({"translation.beam=9"}), HasSubstr("translation.source is set"));
  EXPECT_THAT(refusal({"probe.heads=false"}), HasSubstr("probe.every is above 0"));
  EXPECT_EQ(refusal({"norm.scheme=qknorm", "norm.p=3"}), "");
}

TEST(Config, WhatAppliesAnywayMayBeSaid) {
  EXPECT_EQ(refusal({"norm.p=2"}), "");
  EXPECT_EQ(refusal({"optim.schedule=constant", "optim.decay_steps=5000"}), "");  // as train.max_steps would make it
  EXPECT_EQ(refusal({"norm.scheme=gpt+", "norm.qk=none", "norm.qk_affine=none"}), "");  // invalid without it
}

TEST(Config, ARecipesKeysMayBeOverriddenFromOutside) {
  std::vector<Setting> settings = parse_toml("norm.scheme = \"lp\"\nnorm.p = 4\n", "x.toml");
  settings.push_back(parse_setting("norm.scheme=none"));
  EXPECT_THAT(resolve_config(settings).notes, testing::ElementsAre(HasSubstr("x.toml:2: norm.p has no effect")));
  settings.push_back(parse_setting("norm.p=5"));
  EXPECT_THROW(resolve_config(settings), UsageError);
  EXPECT_NO_THROW(resolve_config(optional_settings(settings)));
}

TEST(Config, ConditionsNameKeysAndTheirValues) {
  Config config;
  const FieldList list = fields(config);
  for (const Field& field : list.fields()) {
    std::vector<Condition> conditions = field.read_when;
    if (field.trains_when) conditions.push_back(*field.trains_when);
    for (const Condition& condition : conditions)
      for (const auto& [key, value] : condition.values())
        EXPECT_NO_THROW(list.at(key, field.key).set(value)) << field.key << ": " << key << " and " << value;
  }
}

TEST(Config, TheSchemesLabelShowsWhatWasOverridden) {
  EXPECT_EQ(scheme_label(load({"norm.scheme=qknorm"}).config.norm), "qknorm");
  EXPECT_EQ(scheme_label(load({"norm.scheme=qknorm", "norm.p=3"}).config.norm), "qknorm, p = 3");
}

}  // namespace
}  // namespace normlab
