#include "normlab/base/suggest.h"

#include <algorithm>

#include "normlab/base/text.h"

namespace normlab {
namespace {

// Other words for a key, a scheme, a verb or an option, as other programs and papers call it.
struct Synonym {
  std::string_view word, meant;
};
constexpr Synonym synonyms[] = {
    {"learning_rate", "optim.lr"},
    {"rate", "optim.lr"},
    {"wd", "optim.weight_decay"},
    {"decay", "optim.weight_decay"},
    {"warmup", "optim.warmup_steps"},
    {"grad_clip", "optim.clip"},
    {"max_grad_norm", "optim.clip"},
    {"layers", "model.n_layers"},
    {"n_layer", "model.n_layers"},
    {"num_layers", "model.n_layers"},
    {"depth", "model.n_layers"},
    {"heads", "model.n_heads"},
    {"n_head", "model.n_heads"},
    {"num_heads", "model.n_heads"},
    {"kv_heads", "model.n_kv_heads"},
    {"width", "model.d_model"},
    {"dim", "model.d_model"},
    {"n_embd", "model.d_model"},
    {"hidden_size", "model.d_model"},
    {"context", "model.seq_len"},
    {"context_length", "model.seq_len"},
    {"block_size", "model.seq_len"},
    {"sequence_length", "model.seq_len"},
    {"steps", "train.max_steps"},
    {"iters", "train.max_steps"},
    {"max_iters", "train.max_steps"},
    {"iterations", "train.max_steps"},
    {"epoch", "train.max_steps"},
    {"epochs", "train.max_steps"},
    {"batch", "train.batch_size"},
    {"bs", "train.batch_size"},
    {"grad_accum", "train.accumulate"},
    {"gradient_accumulation_steps", "train.accumulate"},
    {"eval_interval", "train.eval_every"},
    {"norm", "norm.scheme"},
    {"dataset", "data.source"},
    {"text", "data.source"},
    {"baseline", "none"},
    {"plain", "none"},
    {"vanilla", "none"},
    {"l2", "qknorm"},
    {"rmsnorm", "rms"},
    {"rms_norm", "rms"},
    {"qwen3", "rms"},
    {"gpt", "gpt+"},
    {"gemma2", "softcap"},
    {"swin", "cosine"},
    {"kimi", "qk-clip"},
    {"run", "train"},
    {"fit_model", "train"},
    {"sample", "generate"},
    {"evaluate", "eval"},
    {"test", "eval"},
    {"validate", "eval"},
    {"study", "compare"},
    {"sweep", "compare"},
    {"benchmark", "bench"},
    {"list", "schemes"},
    {"keys", "config"},
    {"man", "manual"},
    {"bleu", "score"},
    {"convert", "import"},
    {"visualize", "inspect"},
    {"visualise", "inspect"},
    {"output", "--out"},
    {"output_dir", "--out"},
    {"folder", "--out"},
    {"dir", "--out"},
    {"model", "--run"},
    {"checkpoint", "--run"},
    {"input", "--data"},
    {"dataset", "--data"},
    {"text", "--data"},
    {"workers", "--jobs"},
    {"cpus", "--threads"},
    {"cores", "--threads"},
    {"max_tokens", "--tokens"},
    {"length", "--tokens"},
    {"temp", "--temperature"},
    {"n_jobs", "--jobs"},
};

// In small letters, words joined with underscores, without the dashes of an option.
std::string plain_form(std::string_view name) {
  std::string out;
  for (const char c : name.substr(std::min(name.size(), name.find_first_not_of('-')))) {
    const bool capital = c >= 'A' && c <= 'Z';
    out += capital ? static_cast<char>(c - 'A' + 'a') : c == '-' || c == ' ' ? '_' : c;
  }
  return out;
}

// "optim.lr" -> "lr"
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::optional<std::string> alias_of(std::string_view name, std::span<const std::string> candidates) {
  const std::string whole = plain_form(name), last = last_part(whole);
  for (const std::string& each : candidates)
    if (plain_form(each) == whole) return each;
  for (const Synonym& row : synonyms)
    if ((row.word == whole || row.word == last) && std::ranges::find(candidates, row.meant) != candidates.end())
      return std::string(row.meant);
  std::optional<std::string> found;
  for (const std::string& each : candidates)
    if (each.find('.') != std::string::npos && last_part(plain_form(each)) == last) {
      if (found) return std::nullopt;  // of two sections
      found = each;
    }
  return found;
}

std::optional<std::string> suggest(std::string_view name, std::span<const std::string> candidates) {
  if (auto alias = alias_of(name, candidates)) return alias;
  std::vector<std::string> forms;
  for (const std::string& each : candidates) forms.push_back(plain_form(each));
  const auto near = nearest(plain_form(name), forms);
  if (!near) return std::nullopt;
  return candidates[static_cast<size_t>(std::ranges::find(forms, *near) - forms.begin())];
}

}  // namespace normlab
