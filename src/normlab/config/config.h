// The whole configuration of a run: every section, how it is read, completed and compared.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "normlab/config/model_config.h"
#include "normlab/data/pair_batch.h"

namespace normlab {

enum class TokenUnit { characters, bytes, subwords };
enum class ScheduleKind { cosine, linear, constant, inverse_sqrt, plateau };
enum class OptimizerKind { adamw, muon };
enum class MuonScale { original, match_rms_adamw };
enum class TrainedPart { all, gains, qk_gains, embeddings, weights };
enum class BleuWords { rule_13a, intl, character, none, zh };  // in the order of score_tokenizers

struct DataConfig {
  std::string source = "tinyshakespeare";
  TokenUnit tokenizer = TokenUnit::characters;
  std::string tokenizer_file;
  int vocab_size = 0;
  std::string field = "text";
  std::string separator;
  int memory_mb = 64;
  int folds = 10;
  int fold = 9;
};

struct OptimConfig {
  OptimizerKind optimizer = OptimizerKind::adamw;
  double lr = 1e-3;
  double min_lr = 1e-4;
  ScheduleKind schedule = ScheduleKind::cosine;
  int warmup_steps = 100;
  int64_t decay_steps = 0;
  double plateau_decay = 0.8;
  int plateau_patience = 3;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;
  double gain_lr = 1.0;
  double adamw_lr = 0.0;
  double momentum = 0.95;
  MuonScale muon_scale = MuonScale::match_rms_adamw;
};

struct TrainConfig {
  int64_t max_steps = 5000;
  int batch_size = 64;
  int accumulate = 1;
  int64_t eval_every = 250;
  int eval_windows = 0;
  int64_t log_every = 10;
  int64_t save_every = 0;
  int keep_last = 2;  // so that there is one before a damaged one
  int keep_best = 1;
  int early_stop = 0;
  int64_t seed = 1337;
  std::string start;
  TrainedPart only = TrainedPart::all;
  int threads = 0;
  std::string device = "auto";
};

struct ProbeConfig {
  int64_t every = 0;
  bool heads = true;
};

// A run with languages trains a translator; data.source then names the folder of its files.
struct TranslationConfig {
  std::string source, target;
  std::string train = "train", dev = "dev", test = "test";
  int encoder_layers = 0;
  int length_p975 = 0;
  int bpe_operations = 8000;
  std::string sentencepiece;
  int64_t min_frequency = 1;
  double bpe_dropout = 0.0;
  int64_t batch_tokens = 4096;
  PairBatching batching = PairBatching::fixed;
  double word_dropout = 0.0;
  double label_smoothing = 0.1;
  int beam = 4;
  double length_penalty = 0.6;
  BleuWords bleu = BleuWords::rule_13a;

  bool wanted() const { return !source.empty() || !target.empty(); }
};

struct Config {
  NormScheme norm;
  ModelConfig model;
  DataConfig data;
  OptimConfig optim;
  TrainConfig train;
  ProbeConfig probe;
  TranslationConfig translation;
};

void list_fields(TranslationConfig& config, FieldList& list);
void check_translation(const TranslationConfig& config, const NormScheme& norm, const OptimConfig& optim);

bool is_cpu(const std::string& device);  // also `auto`, until the device is known
// As of a ModelConfig, with regard to train.device: the fused kernels are for the CPU.
void resolve_model(Config& config);
std::string why_not_fused(const Config& config);

// Every field of every section; the list refers to `config`, which must outlive it.
FieldList fields(Config& config);
std::string to_toml(const Config& config);

// UsageError for text that is not UTF-8: it would be written, but never read again.
void require_utf8(const Setting& setting);

struct LoadedConfig {
  Config config;
  std::vector<std::string> notes;  // what was filled in on the scheme's recommendation, and composite kernels
};
// Settings in rising order of precedence. The scheme's row comes first, then the settings, then what the scheme
// recommends where nothing was said; derived values are filled in and everything is checked. UsageError for a setting
// that nothing reads, unless it is optional or says what applies anyway. What its own file makes count may be
// overridden from another source; then there is a note.
LoadedConfig resolve_config(const std::vector<Setting>& settings);

// The configuration that a run stored, with every key.
Config stored_config(const std::filesystem::path& file);

// The schemes with which this configuration would read the key.
std::vector<std::string> schemes_that_read(const Config& config, const std::string& key);

// Every value that results depend on, as text: two configurations with the same compute the same thing.
std::string computed_by(const Config& config);

// "qknorm, p = 3": the row's name and what differs from it.
std::string scheme_label(const NormScheme& scheme);

// Keys that are read and in which two configurations differ, with their values; of the fields that count.
struct ConfigDifference {
  std::string key, a, b;
};
std::vector<ConfigDifference> differences(const Config& a, const Config& b,
                                          const std::function<bool(const Field&)>& counts);

// Refuses to resume a run under another configuration, except for keys that may change on resume.
void require_same_run(const Config& of_run, const Config& wanted);

}  // namespace normlab
