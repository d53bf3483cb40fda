#include "normlab/config/config.h"

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/parameters.h"

namespace normlab {

template <>
std::vector<std::string> enum_names<TokenUnit>() {
  return {"char", "byte", "subword"};
}
template <>
std::vector<std::string> enum_names<TrainedPart>() {
  return {"all", "gains", "qk_gains", "embeddings", "weights"};
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

// Not which of them are there: that is known to libtorch only. A backend loaded beside libtorch, as by the tests, has
// the name that libtorch gives it.
bool is_device_name(const std::string& text) {
  if (text == "auto" || text == "cpu") return true;
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (kind != "cuda" && kind != "privateuseone") return false;
  if (colon == std::string::npos) return true;
  const std::string number = text.substr(colon + 1);
  return !number.empty() && number.size() <= 2 && number.find_first_not_of("0123456789") == std::string::npos;
}

void list_fields(DataConfig& c, FieldList& list) {
  list.section("data");
  list.text("source", c.source,
            "name of a data set, text file (UTF-8), .jsonl, or folder with train.bin and val.bin; aligned files")
      .is_shared_in_studies();
  list.choice("tokenizer", c.tokenizer, "one token per character, per byte, or the subwords of a tokenizer.json")
      .is_shared_in_studies()
      .read_if("translation.source= and train.start=");
  list.text("tokenizer_file", c.tokenizer_file, "path of the tokenizer.json, as of Hugging Face or `normlab bpe learn`")
      .is_shared_in_studies()
      .read_if("translation.source= and train.start= and data.tokenizer=subword");
  list.integer("vocab_size", c.vocab_size, {.min = 0, .max = 1 << 24},
               "rows of the model's table of tokens, for subwords and token files; 0 = as many as needed")
      .is_shared_in_studies()
      .read_if("translation.source= and train.start= and data.tokenizer!=byte");
  list.text("field", c.field, "of a .jsonl file: the key with the text of each line; empty: lines are plain text")
      .is_shared_in_studies()
      .read_if("translation.source=");
  list.text("separator", c.separator, "of a .jsonl file: what stands between two texts; empty: an empty line")
      .is_shared_in_studies()
      .read_if("translation.source= and data.field!=");
  list.integer("memory_mb", c.memory_mb, {.min = 0, .max = 1 << 20},
               "a larger text, in MB, is not held in memory but tokenised into the cache")
      .affects(Effect::execution)
      .may_change_on_resume()
      .read_if("translation.source=");
  list.integer("folds", c.folds, {.min = 2, .max = 1000}, "number of contiguous blocks the text is split into")
      .is_shared_in_studies()
      .read_if("translation.source= or translation.dev=");
  list.integer("fold", c.fold, {.min = 0, .max = 999}, "the block held out, counted from 0; 9 of 10 is nanoGPT's split")
      .is_repeated_in_studies()
      .read_if("translation.source= or translation.dev=");
}

void list_fields(OptimConfig& c, FieldList& list) {
  list.section("optim");
  list.choice("optimizer", c.optimizer, "muon: Muon for the matrices of the blocks, AdamW for everything else");
  list.real("lr", c.lr, {.min = 0.0}, "peak learning rate; with muon, that of the matrices");
  list.real("min_lr", c.min_lr, {.min = 0.0}, "learning rate at the end of the decay")
      .read_if("optim.schedule!=constant");
  list.choice("schedule", c.schedule, "how the rate falls after the warm-up; plateau: by BLEU, for translators only");
  list.integer("warmup_steps", c.warmup_steps, {.min = 0}, "steps of linear warm-up");
  list.integer("decay_steps", c.decay_steps, {.min = 0}, "step at which min_lr is reached; 0 = train.max_steps")
      .read_if("optim.schedule=cosine|linear");
  list.real("plateau_decay", c.plateau_decay, {.min = 0.0, .max = 1.0, .open_min = true},
            "factor of the rate after a BLEU below each of the last plateau_patience; training ends below min_lr")
      .read_if("optim.schedule=plateau");
  list.integer("plateau_patience", c.plateau_patience, {.min = 1, .max = 1000},
               "number of earlier BLEU scores to compare with")
      .read_if("optim.schedule=plateau");
  list.real("beta1", c.beta1, {.min = 0.0, .max = 0.999999}, "decay of the mean of gradients");
  list.real("beta2", c.beta2, {.min = 0.0, .max = 0.999999}, "decay of the mean of squared gradients");
  list.real("eps", c.eps, {.min = 0.0, .max = 1.0}, "epsilon of AdamW");
  list.real("weight_decay", c.weight_decay, {.min = 0.0, .max = 1.0},
            "weight decay of tensors with two or more dimensions");
  list.real("clip", c.clip, {.min = 0.0}, "largest global gradient norm; 0 = no clipping");
  list.real("gain_lr", c.gain_lr, {.min = 0.0},
            "learning rate of the gains of queries and keys, as a multiple of AdamW's")
      .read_if("norm.gain!=none and norm.learn_gain=true or norm.qk_affine!=none");
  list.real("adamw_lr", c.adamw_lr, {.min = 0.0},
            "peak learning rate of AdamW beside Muon, on the schedule of lr; 0 = lr")
      .read_if("optim.optimizer=muon");
  list.real("momentum", c.momentum, {.min = 0.0, .max = 0.999999}, "Nesterov momentum of Muon")
      .read_if("optim.optimizer=muon");
  list.choice("muon_scale", c.muon_scale,
              "factor of Muon's updates; original: max(1, rows/cols)^0.5, match_rms_adamw: 0.2 max(rows, cols)^0.5")
      .read_if("optim.optimizer=muon");
}

void list_dtype(Precision& dtype, FieldList& list) {
  const auto get = [&dtype] { return dtype == Precision::bfloat16 ? "bfloat16" : "float32"; };
  const auto set = [&dtype](const std::string& text) {
    if (text == "float16" || text == "fp16")
      throw UsageError("train.dtype",
                       "float16 is not supported: it ends at 65504, so that gradients need a loss scaled to fit. "
                       "Use bfloat16, which has the range of float32.");
    dtype = text == "bfloat16" ? Precision::bfloat16 : Precision::float32;
    return text == "bfloat16" || text == "float32";
  };
  list.custom("dtype", "type of matrix products; weights, norms, gains, softmax, loss and optimiser are float32",
              "one of float32, bfloat16", get, set);
}

void list_fields(TrainConfig& c, Precision& dtype, FieldList& list) {
  list.section("train");
  list.integer("max_steps", c.max_steps, {.min = 0}, "optimiser steps").may_change_on_resume();
  list.integer("batch_size", c.batch_size, {.min = 1, .max = 1 << 20}, "windows per forward and backward pass")
      .read_if("translation.source=");
  list.integer("accumulate", c.accumulate, {.min = 1, .max = 1 << 20}, "passes whose gradients make one step");
  list.integer("eval_every", c.eval_every, {.min = 0}, "steps between evaluations; 0 = at the end only")
      .affects(Effect::record)
      .trains("train.early_stop>0 or optim.schedule=plateau")
      .may_change_on_resume();
  list.integer("eval_windows", c.eval_windows, {.min = 0}, "windows per evaluation; 0 = the whole held-out part")
      .affects(Effect::measure)
      .trains("train.early_stop>0 or optim.schedule=plateau")
      .is_shared_in_studies()
      .may_change_on_resume();
  list.integer("log_every", c.log_every, {.min = 1}, "steps between logged training losses")
      .affects(Effect::record)
      .may_change_on_resume();
  list.integer("save_every", c.save_every, {.min = 0}, "steps between checkpoints; 0 = with each evaluation")
      .affects(Effect::storage)
      .may_change_on_resume();
  list.integer("keep_last", c.keep_last, {.min = 1, .max = 1 << 20}, "latest checkpoints kept")
      .affects(Effect::storage)
      .may_change_on_resume();
  list.integer("keep_best", c.keep_best, {.min = 0, .max = 1 << 20}, "checkpoints with the lowest validation loss kept")
      .affects(Effect::storage)
      .may_change_on_resume();
  list.integer("early_stop", c.early_stop, {.min = 0}, "evaluations without a better loss before stopping; 0 = never")
      .may_change_on_resume()
      .read_if("train.eval_every>0");
  list.integer("seed", c.seed, {.min = 0}, "seed of initial weights, batches and dropout").is_repeated_in_studies();
  list.text("start", c.start,
            "run or checkpoint whose weights and vocabulary training starts from; empty: weights are drawn")
      .read_if("translation.source=");
  list.choice("only", c.only, "which parameters are trained; the others keep their values")
      .meaning("gains", "gains and biases of all norms, gains and p of queries and keys, learned scales")
      .meaning("qk_gains", "gains and p of queries and keys")
      .meaning("embeddings", "embeddings and learned positions")
      .meaning("weights", "linear maps with their biases")
      .read_if("translation.source=");
  list_dtype(dtype, list);
  list.integer("threads", c.threads, {.min = 0, .max = 4096}, "threads; 0 = all cores, or one for a small model")
      .affects(Effect::execution)
      .may_change_on_resume();
  list.custom(
          "device", "where the model runs; auto: CUDA where libtorch and the machine have it, else the CPU",
          "auto, cpu, cuda or cuda:N", [&c] { return c.device; },
          [&c](const std::string& text) { return is_device_name(text) && (c.device = text, true); })
      .affects(Effect::execution)
      .may_change_on_resume();
}

void list_fields(ProbeConfig& c, FieldList& list) {
  list.section("probe");
  list.integer("every", c.every, {.min = 0},
               "steps between measurements of attention, gradients and updates; 0 = never")
      .affects(Effect::record)
      .may_change_on_resume();
  list.flag("heads", c.heads, "write values per head, not only per layer")
      .affects(Effect::record)
      .may_change_on_resume()
      .read_if("probe.every>0");
}

}  // namespace

FieldList fields(Config& config) {
  FieldList list;
  list_fields(config.norm, list);
  list_fields(config.model, list);
  list_fields(config.data, list);
  list_fields(config.optim, list);
  list_fields(config.train, config.model.dtype, list);
  list_fields(config.probe, list);
  list_fields(config.translation, list);
  return list;
}

std::string to_toml(const Config& config) {
  Config copy = config;
  return to_toml(fields(copy));
}

namespace {

// A rule by the number it gives: with p = 2 a matched gain is that of log2(L^2-L). The L of a translator is known only
// once its text is read.
std::string computed_value(const Config& config, const Field& field) {
  const ModelConfig& model = config.model;
  if (config.translation.wanted()) return field.get();
  if (field.key == "norm.gain_init") return format_number(initial_gain(model, config.norm));
  if (field.key == "norm.alpha_init") return format_number(initial_alpha(model, config.norm));
  if (field.key == "norm.logit_scale")
    return format_number(value_of(config.norm.logit_scale, {.d_head = model.d_head, .d_model = model.d_model}));
  return field.get();
}

}  // namespace

std::string computed_by(const Config& config) {
  Config copy = config;
  const FieldList list = fields(copy);
  std::vector<std::string> lines;
  for (const Field& field : list.fields())
    if (list.affects_results(field) && field.key != "norm.scheme")
      lines.push_back(concat(field.key, " = ", computed_value(config, field)));
  return join(lines, "\n");
}

std::string scheme_label(const NormScheme& scheme) {
  NormScheme own = scheme, row = find_scheme(scheme.name);
  FieldList own_fields, row_fields;
  list_fields(own, own_fields);
  list_fields(row, row_fields);
  std::string label = scheme.name;
  for (size_t i = 0; i < own_fields.fields().size(); ++i) {
    const Field& field = own_fields.fields()[i];
    if (field.get() != row_fields.fields()[i].get())
      label += concat(", ", field.key.substr(field.key.find('.') + 1), " = ", field.get());
  }
  return label;
}

std::vector<ConfigDifference> differences(const Config& a, const Config& b,
                                          const std::function<bool(const Field&)>& counts) {
  Config left = a, right = b;
  const FieldList left_list = fields(left), right_list = fields(right);
  std::vector<ConfigDifference> found;
  for (size_t i = 0; i < left_list.fields().size(); ++i) {
    const Field &one = left_list.fields()[i], &other = right_list.fields()[i];
    const bool read = left_list.is_read(one) || right_list.is_read(other);
    if (read && counts(one) && one.get() != other.get()) found.push_back({one.key, one.get(), other.get()});
  }
  return found;
}

void require_same_run(const Config& of_run, const Config& wanted) {
  std::vector<std::string> differing;
  for (const ConfigDifference& each : differences(of_run, wanted, [](const Field& field) { return !field.on_resume; }))
    differing.push_back(concat(each.key, " is ", each.a, " there and ", each.b, " here"));
  if (!differing.empty())
    throw UsageError("--resume",
                     concat("the run was started with another configuration: ", join(differing, "; "),
                            ". Leave out --config and --set to resume it unchanged, or choose another --out."));
}

}  // namespace normlab
