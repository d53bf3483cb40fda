#include "normlab/config/config.h"

#include <algorithm>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/utf8.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<TokenUnit>() {
  return {"char", "byte"};
}
template <>
std::vector<std::string> enum_names<ScheduleKind>() {
  return {"cosine", "linear", "constant", "inverse_sqrt", "plateau"};
}
template <>
std::vector<std::string> enum_names<OptimizerKind>() {
  return {"adamw", "muon"};
}
template <>
std::vector<std::string> enum_names<MuonScale>() {
  return {"original", "match_rms_adamw"};
}

namespace {

void list_fields(DataConfig& c, FieldList& list) {
  list.section("data");
  list.text("source", c.source, "name of a data set or path of a UTF-8 text file; folder of aligned files");
  list.choice("tokenizer", c.tokenizer, "one token per character or per byte");
  list.integer("folds", c.folds, {.min = 2, .max = 1000}, "number of contiguous blocks the text is split into");
  list.integer("fold", c.fold, {.min = 0, .max = 999},
               "the block held out, counted from 0; 9 of 10 is nanoGPT's split");
}

void list_fields(OptimConfig& c, FieldList& list) {
  list.section("optim");
  list.choice("optimizer", c.optimizer, "muon: Muon for the matrices of the blocks, AdamW for everything else");
  list.real("lr", c.lr, {.min = 0.0}, "peak learning rate; with muon, that of the matrices");
  list.real("min_lr", c.min_lr, {.min = 0.0}, "learning rate at the end of the decay");
  list.choice("schedule", c.schedule, "how the rate falls after the warm-up; plateau: by BLEU, for translators only");
  list.integer("warmup_steps", c.warmup_steps, {.min = 0}, "steps of linear warm-up");
  list.integer("decay_steps", c.decay_steps, {.min = 0}, "step at which min_lr is reached; 0 = train.max_steps");
  list.real("plateau_decay", c.plateau_decay, {.min = 0.0, .max = 1.0, .open_min = true},
            "factor of the rate after a BLEU below each of the last plateau_patience; training ends below min_lr");
  list.integer("plateau_patience", c.plateau_patience, {.min = 1, .max = 1000},
               "number of earlier BLEU scores to compare with");
  list.real("beta1", c.beta1, {.min = 0.0, .max = 0.999999}, "decay of the mean of gradients");
  list.real("beta2", c.beta2, {.min = 0.0, .max = 0.999999}, "decay of the mean of squared gradients");
  list.real("eps", c.eps, {.min = 0.0, .max = 1.0}, "epsilon of AdamW");
  list.real("weight_decay", c.weight_decay, {.min = 0.0, .max = 1.0},
            "weight decay of tensors with two or more dimensions");
  list.real("clip", c.clip, {.min = 0.0}, "largest global gradient norm; 0 = no clipping");
  list.real("gain_lr", c.gain_lr, {.min = 0.0},
            "learning rate of the gains of queries and keys, as a multiple of AdamW's");
  list.real("adamw_lr", c.adamw_lr, {.min = 0.0},
            "peak learning rate of AdamW beside Muon, on the schedule of lr; 0 = lr");
  list.real("momentum", c.momentum, {.min = 0.0, .max = 0.999999}, "Nesterov momentum of Muon");
  list.choice("muon_scale", c.muon_scale,
              "factor of Muon's updates; original: max(1, rows/cols)^0.5, match_rms_adamw: 0.2 max(rows, cols)^0.5");
}

void list_fields(TrainConfig& c, FieldList& list) {
  list.section("train");
  list.integer("max_steps", c.max_steps, {.min = 0}, "optimiser steps");
  list.integer("batch_size", c.batch_size, {.min = 1, .max = 1 << 20}, "windows per forward and backward pass");
  list.integer("accumulate", c.accumulate, {.min = 1, .max = 1 << 20}, "passes whose gradients make one step");
  list.integer("eval_every", c.eval_every, {.min = 0}, "steps between evaluations; 0 = at the end only");
  list.integer("eval_windows", c.eval_windows, {.min = 0}, "windows per evaluation; 0 = the whole held-out part");
  list.integer("log_every", c.log_every, {.min = 1}, "steps between logged training losses");
  list.integer("save_every", c.save_every, {.min = 0}, "steps between checkpoints; 0 = with each evaluation");
  list.integer("keep_last", c.keep_last, {.min = 1, .max = 1 << 20}, "latest checkpoints kept");
  list.integer("keep_best", c.keep_best, {.min = 0, .max = 1 << 20},
               "checkpoints with the lowest validation loss kept");
  list.integer("early_stop", c.early_stop, {.min = 0}, "evaluations without a better loss before stopping; 0 = never");
  list.integer("seed", c.seed, {.min = 0}, "seed of initial weights, batches and dropout");
  list.integer("threads", c.threads, {.min = 0, .max = 4096}, "threads; 0 = all cores, or one for a small model");
}

void list_fields(ProbeConfig& c, FieldList& list) {
  list.section("probe");
  list.integer("every", c.every, {.min = 0},
               "steps between measurements of attention, gradients and updates; 0 = never");
  list.flag("heads", c.heads, "write values per head, not only per layer");
}

// Keys that may change when a run resumes: they say how long and how closely it is watched, not what it computes.
const std::set<std::string> free_keys = {"train.max_steps", "train.eval_every", "train.eval_windows",
                                         "train.log_every", "train.save_every", "train.keep_last",
                                         "train.keep_best", "train.early_stop", "train.threads",
                                         "probe.every",     "probe.heads"};

}  // namespace

FieldList fields(Config& config) {
  FieldList list;
  list_fields(config.norm, list);
  list_fields(config.model, list);
  list_fields(config.data, list);
  list_fields(config.optim, list);
  list_fields(config.train, list);
  list_fields(config.probe, list);
  list_fields(config.translation, list);
  return list;
}

std::string to_toml(const Config& config) {
  Config copy = config;
  return to_toml(fields(copy));
}

void require_utf8(const Setting& setting) {
  for (const std::string& value : setting.values)
    if (first_invalid_utf8(value))
      throw UsageError(setting.key, concat("the value of ", setting.where,
                                           " is not UTF-8, and could not be read back from the run's config.toml. "
                                           "Rename the file, or use a symbolic link."));
}

LoadedConfig resolve_config(const std::vector<Setting>& settings) {
  LoadedConfig loaded;
  Config& config = loaded.config;
  std::string scheme = "none";
  std::set<std::string> configured;
  for (const Setting& setting : settings) {
    configured.insert(setting.key);
    if (setting.key == "norm.scheme" && !setting.is_list) scheme = setting.values.front();
  }
  config.norm = find_scheme(scheme);

  const FieldList list = fields(config);
  for (const Setting& setting : settings) {
    require_utf8(setting);
    apply(list, setting);
  }
  for (const auto& [key, value] : config.norm.recommended) {
    if (configured.contains(key) || list.at(key, scheme).get() == value) continue;
    list.at(key, scheme).set(value);
    loaded.notes.push_back(concat(key, " = ", value, ", as the scheme '", scheme, "' recommends"));
  }

  check_scheme(config.norm);
  const bool free_choice = config.model.kernels == Kernels::best;
  resolve_model(config.model, config.norm);
  if (free_choice && config.model.kernels == Kernels::composite)
    loaded.notes.push_back(concat("model.kernels = composite: the fused kernels do not support this model, because ",
                                  why_not_fused(config.model, config.norm)));
  if (config.data.fold >= config.data.folds)
    throw UsageError("data.fold", concat("got ", config.data.fold, ", expected 0 to ", config.data.folds - 1,
                                         " with data.folds = ", config.data.folds, "."));
  if (config.optim.min_lr > config.optim.lr)
    throw UsageError("optim.min_lr",
                     concat("got ", config.optim.min_lr, ", expected at most optim.lr = ", config.optim.lr, "."));
  if (config.optim.adamw_lr > 0.0 && config.optim.lr == 0.0)
    throw UsageError("optim.adamw_lr", concat("got ", config.optim.adamw_lr, " with optim.lr = 0, expected 0: AdamW's ",
                                              "rate follows the schedule of optim.lr. Set optim.lr above 0."));
  if (config.optim.decay_steps == 0) config.optim.decay_steps = config.train.max_steps;
  check_translation(config.translation, config.norm, config.optim);
  if (config.translation.wanted() && config.translation.encoder_layers == 0)
    config.translation.encoder_layers = config.model.n_layers;
  return loaded;
}

std::vector<ConfigDifference> differences(const Config& a, const Config& b) {
  Config left = a, right = b;
  const FieldList left_list = fields(left), right_list = fields(right);
  std::vector<ConfigDifference> found;
  for (size_t i = 0; i < left_list.fields().size(); ++i) {
    const Field &one = left_list.fields()[i], &other = right_list.fields()[i];
    if (one.get() != other.get()) found.push_back({one.key, one.get(), other.get()});
  }
  return found;
}

void require_same_run(const Config& of_run, const Config& wanted) {
  std::vector<std::string> differing;
  for (const ConfigDifference& each : differences(of_run, wanted))
    if (!free_keys.contains(each.key))
      differing.push_back(concat(each.key, " is ", each.a, " there and ", each.b, " here"));
  if (!differing.empty())
    throw UsageError("--resume",
                     concat("the run was started with another configuration: ", join(differing, "; "),
                            ". Leave out --config and --set to resume it unchanged, or choose another --out."));
}

}  // namespace normlab
