#include "normlab/train/checkpoint.h"

#include <nlohmann/json.hpp>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/models/device.h"
#include "normlab/models/weights.h"
#include "normlab/record/checksums.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* model_file = "model.safetensors";
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* tokenizer_file = "tokenizer.json";
constexpr const char* config_file = "config.toml";

json read_json(const fs::path& path) {
  json content = parse_json(read_file(path));
  if (content.is_discarded())
    throw DataError(path.string(), "is not JSON: the checkpoint is damaged. Use another one.");
  return content;
}

// The checkpoint itself, or the one a run offers.
fs::path checkpoint_folder(const fs::path& path) {
  if (fs::exists(path / model_file)) return path;
  const RunDir run = RunDir::open(path);
  if (const auto best = run.best()) return best->path;
  if (const auto latest = run.latest()) return latest->path;
  throw DataError(path.string(), "is a run without a checkpoint yet. Train it first: `normlab train --resume`.");
}

struct CheckpointParts {
  NamedTensors weights;
  const NamedTensors* optimizer;  // may be null
  TrainState state;
  json vocabulary;
  const Config& config;
};

void save(const fs::path& folder, const CheckpointParts& parts) {
  StagedFolder staged(folder);
  save_tensors(staged.path() / model_file, parts.weights, {{"format", "pt"}});
  if (parts.optimizer) save_tensors(staged.path() / optimizer_file, *parts.optimizer, {});
  update_state(staged.path(), parts.state);
  write_file_atomically(staged.path() / tokenizer_file, parts.vocabulary.dump(2) + "\n");
  write_file_atomically(staged.path() / config_file, to_toml(parts.config));
  write_checksums(staged.path());
  staged.commit();
}

}  // namespace

void save_checkpoint(const fs::path& folder, DecoderLm& model, const NamedTensors& optimizer, const TrainState& state,
                     const Tokenizer& tokenizer, const Config& config) {
  save(folder, {model.state(), &optimizer, state, tokenizer.to_json(), config});
}

void save_checkpoint(const fs::path& folder, EncoderDecoder& model, const NamedTensors& optimizer,
                     const TrainState& state, const PairVocabulary& vocabulary, const Config& config) {
  save(folder, {model.state(), &optimizer, state, vocabulary.to_json(), config});
}

void save_model(const fs::path& folder, DecoderLm& model, int64_t step, const Tokenizer& tokenizer,
                const Config& config) {
  save(folder, {model.state(), nullptr, {.step = step}, tokenizer.to_json(), config});
}

TrainState load_checkpoint(const fs::path& folder, DecoderLm& model, Optimizer& optimizer) {
  load_tensors(folder / model_file, model.state());
  load_tensors(folder / optimizer_file, optimizer.state());
  require_checksums(folder);
  return read_state(folder);
}

TrainState load_checkpoint(const fs::path& folder, EncoderDecoder& model, Optimizer& optimizer) {
  load_weights(folder, model);
  load_tensors(folder / optimizer_file, optimizer.state());
  return read_state(folder);
}

void load_weights(const fs::path& folder, EncoderDecoder& model) {
  load_tensors(folder / model_file, model.state());
  require_checksums(folder);
}

void load_start(const fs::path& path, DecoderLm& model) {
  const fs::path folder = checkpoint_folder(path);
  require_checksums(folder);
  const SafetensorsFile file(folder / model_file);
  std::set<std::string> used;
  const torch::NoGradGuard no_grad;
  model.visit([&](const std::string& name, torch::Tensor& tensor, Role role) {
    const TensorView* view = file.find(name);
    const bool may_lack = role == Role::qk_gain || role == Role::qk_p || role == Role::scale || role == Role::state;
    if (!view && may_lack) return;
    const torch::Tensor theirs = load_tensor(file.at(name));
    if (theirs.sizes() != tensor.sizes())
      throw DataError(file.path().string(),
                      concat("'", name, "' is ", c10::str(theirs.sizes()), ", expected ", c10::str(tensor.sizes()),
                             ". Start from a model of the same shape."));
    tensor.copy_(theirs);
    used.insert(name);
  });
  for (const TensorView& view : file.tensors())
    if (!used.contains(view.name))
      throw DataError(file.path().string(),
                      concat("tensor '", view.name, "' has no place in the model to be trained."));
}

PairVocabulary load_pair_vocabulary(const fs::path& folder) {
  return PairVocabulary::from_json(read_json(folder / tokenizer_file));
}

EncoderDecoder make_translator(const Config& config, int vocab_size, uint64_t seed) {
  return {config.model, config.norm,
          TranslatorShape{.vocab_size = vocab_size,
                          .encoder_layers = config.translation.encoder_layers,
                          .length_p975 = config.translation.length_p975,
                          .label_smoothing = config.translation.label_smoothing},
          seed, tensor_options(config)};
}

Tokenizer load_tokenizer(const fs::path& folder) { return Tokenizer::from_json(read_json(folder / tokenizer_file)); }

Config load_checkpoint_config(const fs::path& folder) { return stored_config(folder / config_file); }

LoadedModel load_model(const fs::path& path, LoadOptions options) {
  const fs::path folder = checkpoint_folder(path);
  Config config = load_checkpoint_config(folder);
  if (config.translation.wanted())
    throw UsageError(path.string(), "is a translator, not a language model. Use `normlab translate --run`.");
  settle_device(config, options.device, "--device");
  Tokenizer tokenizer = load_tokenizer(folder);
  DecoderLm model(config.model, config.norm, tokenizer.vocab_size(), 0, tensor_options(config));
  load_tensors(folder / model_file, model.state());
  require_checksums(folder);
  if (!options.allow_nonfinite) require_finite(folder / model_file, model.state());
  return {config, std::move(tokenizer), std::move(model), read_state(folder).step, folder};
}

LoadedTranslator load_translator(const fs::path& path, LoadOptions options) {
  const fs::path folder = checkpoint_folder(path);
  Config config = load_checkpoint_config(folder);
  if (!config.translation.wanted())
    throw UsageError(path.string(), "is a language model, not a translator. Use `normlab generate`.");
  settle_device(config, options.device, "--device");
  PairVocabulary vocabulary = load_pair_vocabulary(folder);
  EncoderDecoder model = make_translator(config, vocabulary.size(), 0);
  load_weights(folder, model);
  if (!options.allow_nonfinite) require_finite(folder / model_file, model.state());
  return {config, std::move(vocabulary), std::move(model), read_state(folder).step, folder};
}

}  // namespace normlab
