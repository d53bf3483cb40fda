// A checkpoint: model.safetensors, optimizer.safetensors, state.json, tokenizer.json and config.toml in one folder. One
// that no training resumes from has no optimizer.safetensors.
#pragma once

#include <filesystem>

#include "normlab/config/config.h"
#include "normlab/data/pair_vocabulary.h"
#include "normlab/data/tokenizer.h"
#include "normlab/models/decoder_lm.h"
#include "normlab/models/encoder_decoder.h"
#include "normlab/record/run_dir.h"
#include "normlab/train/optimizer.h"
#include "normlab/train/train_state.h"

namespace normlab {

// Written under a temporary name, synced and renamed: it is whole or it is not there. `optimizer` is its state.
void save_checkpoint(const std::filesystem::path& folder, DecoderLm& model, const NamedTensors& optimizer,
                     const TrainState& state, const Tokenizer& tokenizer, const Config& config);

void save_checkpoint(const std::filesystem::path& folder, EncoderDecoder& model, const NamedTensors& optimizer,
                     const TrainState& state, const PairVocabulary& vocabulary, const Config& config);

// A model that is not trained any further here: without an optimiser's state.
void save_model(const std::filesystem::path& folder, DecoderLm& model, int64_t step, const Tokenizer& tokenizer,
                const Config& config);

// Fills model and optimiser; DataError when the checkpoint is damaged or of another model.
TrainState load_checkpoint(const std::filesystem::path& folder, DecoderLm& model, Optimizer& optimizer);
TrainState load_checkpoint(const std::filesystem::path& folder, EncoderDecoder& model, Optimizer& optimizer);
// The weights alone.
void load_weights(const std::filesystem::path& folder, EncoderDecoder& model);

// The weights that training starts from: those of a run or checkpoint; what it lacks of gains and scales, also p,
// keeps its initial value. DataError for any other tensor that is missing, left over or of another shape.
void load_start(const std::filesystem::path& path, DecoderLm& model);

Tokenizer load_tokenizer(const std::filesystem::path& folder);
PairVocabulary load_pair_vocabulary(const std::filesystem::path& folder);
Config load_checkpoint_config(const std::filesystem::path& folder);

EncoderDecoder make_translator(const Config& config, int vocab_size, uint64_t seed);

// How a model is loaded for use: one with weights that are not finite is a DataError unless that is allowed.
struct LoadOptions {
  bool allow_nonfinite = false;
  std::string device = "cpu";  // --device
};

// A model ready for use, with all that belongs to it.
struct LoadedModel {
  Config config;
  Tokenizer tokenizer;
  DecoderLm model;
  int64_t step = 0;
  std::filesystem::path folder;
};
// `path` is a checkpoint, or a run, of which the best or else the latest checkpoint is taken.
LoadedModel load_model(const std::filesystem::path& path, LoadOptions options = {});

struct LoadedTranslator {
  Config config;
  PairVocabulary vocabulary;
  EncoderDecoder model;
  int64_t step = 0;
  std::filesystem::path folder;
};
LoadedTranslator load_translator(const std::filesystem::path& path, LoadOptions options = {});

}  // namespace normlab
