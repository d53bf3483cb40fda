#include "normlab/train/checkpoint.h"

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/models/weights.h"
#include "normlab/record/checksums.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* model_file = "model.safetensors";
constexpr const char* optimizer_file = "optimizer.safetensors";
constexpr const char* state_file = "state.json";
constexpr const char* tokenizer_file = "tokenizer.json";
constexpr const char* config_file = "config.toml";

json to_json(const TrainState& s) {
  json out = {{"step", s.step},
              {"last_eval", s.last_eval},
              {"best_step", s.best_step},
              {"evals_since_best", s.evals_since_best},
              {"train_seconds", s.train_seconds},
              {"train_cpu_seconds", s.train_cpu_seconds},
              {"data_sha256", s.data_sha256}};
  if (s.last_eval >= 0) out["val_loss"] = s.val_loss;
  if (s.best_step >= 0) out["best_loss"] = s.best_loss;
  if (!s.bleus.empty()) out["bleus"] = s.bleus, out["lr_factor"] = s.lr_factor;
  if (s.test_bleu >= 0.0) out["test_bleu"] = s.test_bleu;
  seal(out);
  return out;
}

json read_json(const fs::path& path) {
  json content = parse_json(read_file(path));
  if (content.is_discarded())
    throw DataError(path.string(), "is not JSON: the checkpoint is damaged. Use another one.");
  return content;
}

TrainState read_state(const fs::path& path) {
  const json in = read_json(path);
  if (!is_intact(in)) throw DataError(path.string(), "has changed since it was written: the checkpoint is damaged.");
  try {
    const TrainState state = {.step = in.at("step"),
                              .last_eval = in.at("last_eval"),
                              .val_loss = in.value("val_loss", 0.0),
                              .best_loss = in.value("best_loss", 0.0),
                              .best_step = in.at("best_step"),
                              .evals_since_best = in.at("evals_since_best"),
                              .train_seconds = in.at("train_seconds"),
                              .train_cpu_seconds = in.value("train_cpu_seconds", 0.0),
                              .data_sha256 = in.at("data_sha256"),
                              .bleus = in.value("bleus", std::vector<double>()),
                              .lr_factor = in.value("lr_factor", 1.0),
                              .test_bleu = in.value("test_bleu", -1.0)};
    const int64_t of_folder = checkpoint_step(path.parent_path()).value_or(state.step);
    if (state.step < 0 || state.step != of_folder || state.last_eval < -1 || state.last_eval > state.step ||
        state.best_step < -1 || state.best_step > state.step || state.evals_since_best < 0)
      throw DataError(path.string(),
                      concat("holds steps that cannot be (step ", state.step, ", last evaluation ", state.last_eval,
                             ", best ", state.best_step, "): the checkpoint is damaged. Use another one."));
    return state;
  } catch (const json::exception& error) {
    throw DataError(path.string(), concat("does not hold the state of a run (", error.what(), ")."));
  }
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
  const Optimizer* optimizer;  // may be null
  TrainState state;
  json vocabulary;
  const Config& config;
};

void save(const fs::path& folder, const CheckpointParts& parts) {
  StagedFolder staged(folder);
  save_tensors(staged.path() / model_file, parts.weights, {{"format", "pt"}});
  if (parts.optimizer) save_tensors(staged.path() / optimizer_file, parts.optimizer->state(), {});
  update_state(staged.path(), parts.state);
  write_file_atomically(staged.path() / tokenizer_file, parts.vocabulary.dump(2) + "\n");
  write_file_atomically(staged.path() / config_file, to_toml(parts.config));
  write_checksums(staged.path());
  staged.commit();
}

}  // namespace

void save_checkpoint(const fs::path& folder, DecoderLm& model, const Optimizer& optimizer, const TrainState& state,
                     const Tokenizer& tokenizer, const Config& config) {
  save(folder, {model.state(), &optimizer, state, tokenizer.to_json(), config});
}

void save_checkpoint(const fs::path& folder, EncoderDecoder& model, const Optimizer& optimizer, const TrainState& state,
                     const PairVocabulary& vocabulary, const Config& config) {
  save(folder, {model.state(), &optimizer, state, vocabulary.to_json(), config});
}

void save_model(const fs::path& folder, DecoderLm& model, int64_t step, const Tokenizer& tokenizer,
                const Config& config) {
  save(folder, {model.state(), nullptr, {.step = step}, tokenizer.to_json(), config});
}

void update_state(const fs::path& folder, const TrainState& state) {
  write_file_atomically(folder / state_file, to_json(state).dump(2) + "\n");
}

TrainState load_checkpoint(const fs::path& folder, DecoderLm& model, Optimizer& optimizer) {
  load_tensors(folder / model_file, model.state());
  load_tensors(folder / optimizer_file, optimizer.state());
  require_checksums(folder);
  return read_state(folder / state_file);
}

TrainState load_checkpoint(const fs::path& folder, EncoderDecoder& model, Optimizer& optimizer) {
  load_weights(folder, model);
  load_tensors(folder / optimizer_file, optimizer.state());
  return read_state(folder / state_file);
}

void load_weights(const fs::path& folder, EncoderDecoder& model) {
  load_tensors(folder / model_file, model.state());
  require_checksums(folder);
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
          seed};
}

Tokenizer load_tokenizer(const fs::path& folder) { return Tokenizer::from_json(read_json(folder / tokenizer_file)); }

Config load_checkpoint_config(const fs::path& folder) { return stored_config(folder / config_file); }

LoadedModel load_model(const fs::path& path) {
  const fs::path folder = checkpoint_folder(path);
  const Config config = load_checkpoint_config(folder);
  if (config.translation.wanted())
    throw UsageError(path.string(), "is a translator, not a language model. Use `normlab translate --run`.");
  Tokenizer tokenizer = load_tokenizer(folder);
  DecoderLm model(config.model, config.norm, tokenizer.vocab_size(), 0);
  load_tensors(folder / model_file, model.state());
  require_checksums(folder);
  return {config, std::move(tokenizer), std::move(model), read_state(folder / state_file).step, folder};
}

LoadedTranslator load_translator(const fs::path& path) {
  const fs::path folder = checkpoint_folder(path);
  const Config config = load_checkpoint_config(folder);
  if (!config.translation.wanted())
    throw UsageError(path.string(), "is a language model, not a translator. Use `normlab generate`.");
  PairVocabulary vocabulary = load_pair_vocabulary(folder);
  EncoderDecoder model = make_translator(config, vocabulary.size(), 0);
  load_weights(folder, model);
  return {config, std::move(vocabulary), std::move(model), read_state(folder / state_file).step, folder};
}

}  // namespace normlab
