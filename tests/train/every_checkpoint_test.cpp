// Every scheme as a language model and as a translator: trained, saved, resumed from its checkpoint, loaded and used.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/infer/sample.h"
#include "normlab/models/translate.h"
#include "normlab/record/safetensors.h"
#include "normlab/train/average.h"
#include "normlab/train/session.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class EveryCheckpoint : public testing::Test {
 protected:
  EveryCheckpoint() {
    at::set_num_threads(1);  // steps are so small that a second thread would only be waited for
    std::string text, sources, targets;
    for (int i = 0; i < 60; ++i) text += "the king spoke to his men\nand they went home in silence\n";
    for (int i = 0; i < 12; ++i)
      sources += "o can ve o mar\no gato come\n", targets += "the dog sees the sea\nthe cat eats\n";
    write_file_atomically(folder_ / "text.txt", text);
    for (const char* part : {"train", "dev", "test"}) {
      write_file_atomically(folder_ / concat(part, ".gl"), sources);
      write_file_atomically(folder_ / concat(part, ".en"), targets);
    }
  }
  ~EveryCheckpoint() override { at::set_num_threads(threads_); }

  // Dropout makes a resumed run depend on its step; keep_last leaves checkpoints to average.
  std::vector<Setting> settings(const std::string& scheme, bool translator, int max_steps) const {
    std::vector<std::string> list = {concat("norm.scheme=", scheme),
                                     concat("train.max_steps=", max_steps),
                                     "model.n_layers=1",
                                     "model.n_heads=2",
                                     "model.d_model=16",
                                     "model.seq_len=32",
                                     "model.dropout=0.1",
                                     "train.eval_every=2",
                                     "train.eval_windows=2",
                                     "train.keep_last=2",
                                     "optim.decay_steps=4"};
    if (!translator)
      list.emplace_back("train.batch_size=2");
    else
      for (const char* each : {"translation.source=gl", "translation.target=en", "translation.bpe_operations=20",
                               "translation.batch_tokens=60", "translation.beam=2"})
        list.emplace_back(each);
    list.insert(list.end(), also_.begin(), also_.end());
    list.push_back(concat("data.source=", (translator ? folder_.path() : folder_ / "text.txt").string()));
    std::vector<Setting> parsed;
    for (const std::string& each : list) parsed.push_back(parse_setting(each));
    return parsed;
  }

  NamedTensors train(const std::string& scheme, bool translator, const std::string& name, int max_steps, bool resumed) {
    const Config config = resolve_config(settings(scheme, translator, max_steps)).config;
    const auto run =
        open_session({.config = config, .folder = folder_ / name, .resuming = resumed, .command = {"test"}});
    EXPECT_EQ(run->run(), Outcome::finished);
    EXPECT_EQ(run->state().step, max_steps);
    return translator ? load_translator(folder_ / name / "checkpoints/latest").model.state()
                      : load_model(folder_ / name / "checkpoints/latest").model.state();
  }

  // In one go, and in two with a checkpoint between them.
  void expect_resumable(const std::string& scheme, bool translator) {
    const NamedTensors whole = train(scheme, translator, "whole", 4, false);
    train(scheme, translator, "parts", 2, false);
    const NamedTensors parts = train(scheme, translator, "parts", 4, true);
    ASSERT_EQ(whole.size(), parts.size());
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_TRUE(torch::equal(whole[i].second, parts[i].second)) << whole[i].first;
  }

  std::vector<std::string> also_;  // further settings
  int threads_ = at::get_num_threads();
  TemporaryFolder folder_;
};

TEST_F(EveryCheckpoint, OfALanguageModel) {
  for (const NormScheme& row : catalogue()) {
    SCOPED_TRACE(row.name);
    expect_resumable(row.name, false);
    const LoadedModel loaded = load_model(folder_ / "whole");
    int generated = 0;
    generate(loaded.model, {0, 1, 2}, {.max_tokens = 3}, [&](int64_t) { return ++generated > 0; });
    EXPECT_EQ(generated, 3);
    for (const char* name : {"whole", "parts"}) fs::remove_all(folder_ / name);
  }
}

TEST_F(EveryCheckpoint, OfATranslator) {
  int trained = 0;
  for (const NormScheme& row : catalogue()) {
    SCOPED_TRACE(row.name);
    if (const std::string reason = why_no_translator(row); !reason.empty()) {
      EXPECT_THAT([&] { resolve_config(settings(row.name, true, 2)); }, ThrowsMessage<UsageError>(HasSubstr(reason)));
      continue;
    }
    ++trained;
    expect_resumable(row.name, true);
    LoadedTranslator loaded = load_translator(folder_ / "whole");
    const auto translated = [&] {
      return translate_lines(loaded.model, loaded.vocabulary, {"o gato", "o can ve"}, {.beam = 2}, 2);
    };
    const auto lines = translated();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_TRUE(std::isfinite(lines[0].alternatives.at(0).score));
    load_average(folder_ / "whole", 2, loaded.model);
    EXPECT_TRUE(std::isfinite(translated()[1].alternatives.at(0).score));
    for (const char* name : {"whole", "parts"}) fs::remove_all(folder_ / name);
  }
  EXPECT_GT(trained, 15);
}

TEST_F(EveryCheckpoint, OfMuon) {
  for (const auto& [scheme, translator] :
       {std::pair("qk-clip", false), {"ngpt", false}, {"angpt", false}, {"rms", true}}) {
    SCOPED_TRACE(scheme);
    also_ = {"optim.optimizer=muon", "optim.adamw_lr=0.002"};
    if (find_scheme(scheme).qk_clip > 0.0) also_.emplace_back("norm.qk_clip=0.01");  // a limit that it exceeds
    expect_resumable(scheme, translator);
    std::vector<std::string> kinds;
    const SafetensorsFile file(folder_ / "whole/checkpoints/latest/optimizer.safetensors");
    for (const TensorView& each : file.tensors())
      if (const std::string kind = split(each.name, '.').front(); kinds.empty() || kinds.back() != kind)
        kinds.push_back(kind);
    EXPECT_EQ(kinds, (std::vector<std::string>{"mean", "momentum", "square", "step"}));
    for (const char* name : {"whole", "parts"}) fs::remove_all(folder_ / name);
  }
}

}  // namespace
}  // namespace normlab
