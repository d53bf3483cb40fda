#include "normlab/study/run/budget.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/config/flops.h"
#include "normlab/config/load_data.h"
#include "normlab/config/parameters.h"
#include "normlab/study/run/plan.h"

namespace normlab {
namespace {

// The ladder of sizes, smallest first.
struct Size {
  int n_layers, n_heads, d_model, seq_len, batch_size;
};
constexpr std::array sizes = {Size{2, 2, 32, 32, 8},    Size{3, 3, 48, 64, 8},    Size{4, 4, 64, 64, 12},
                              Size{4, 4, 96, 64, 12},   Size{6, 6, 96, 64, 12},   Size{6, 4, 128, 128, 12},
                              Size{6, 6, 192, 128, 16}, Size{6, 8, 256, 256, 16}, Size{6, 6, 384, 256, 16}};

const std::vector<std::string> default_schemes = {"none", "qknorm", "lp", "rms"};
// Around the best of what three minutes allow, between 0.003 and 0.01 for each of the four schemes (3 layers of width
// 48, 600 steps on Tiny Shakespeare); an edge that is best is extended.
const std::vector<std::string> rates = {"0.002", "0.006", "0.02"};
const std::vector<std::string> held_out_folds = {"1", "5", "9"};
constexpr int n_folds = 10, evaluations = 10, least_steps = 100;
constexpr double tokens_per_param = 2.0, most_passes = 10.0;
constexpr double extensions = 0.5;     // of a variant's grid of rates: one in two has its best rate at an edge
constexpr double start_seconds = 1.5;  // of a trial: loading libtorch, the files of its run
constexpr double share = 0.9;          // of the time that is planned with
constexpr int most_characters = 512;   // more distinct ones than this: bytes make the smaller vocabulary

std::string label_of(const std::string& scheme) { return scheme == "lp" ? "lp, p = 3, matched gain" : scheme; }

std::vector<Setting> settings_of(const Budget& budget, const std::string& tokenizer, const Size& size, int64_t steps) {
  std::vector<Setting> out;
  const auto set = [&](const std::string& key, std::vector<std::string> values, bool is_list = false) {
    out.push_back({key, std::move(values), "--budget:0", is_list});
  };
  set("study.title", {concat("Which norm suits ", std::filesystem::path(budget.source).filename().string(), "?")});
  set("study.tune.key", {"optim.lr"});
  set("study.tune.values", rates, true);
  set("study.tune.seed", {"100"});
  set("data.source", {budget.source});
  set("data.tokenizer", {tokenizer});
  set("data.folds", {concat(n_folds)});
  set("data.fold", held_out_folds, true);
  set("model.n_layers", {concat(size.n_layers)});
  set("model.n_heads", {concat(size.n_heads)});
  set("model.d_model", {concat(size.d_model)});
  set("model.seq_len", {concat(size.seq_len)});
  set("optim.min_lr", {"0"});
  set("optim.warmup_steps", {concat(steps / 20)});
  set("train.batch_size", {concat(size.batch_size)});
  set("train.max_steps", {concat(steps)});
  set("train.eval_every", {concat(std::max<int64_t>(1, steps / evaluations))});
  set("train.eval_windows", {"128"});
  set("train.keep_best", {"0"});
  const std::vector<std::string>& schemes = budget.schemes.empty() ? default_schemes : budget.schemes;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const std::string variant = concat("variant.", i, ".");
    set(variant + "label", {label_of(find_scheme(schemes[i]).name)});
    set(variant + "norm.scheme", {schemes[i]});
    if (schemes[i] == "lp") set(variant + "norm.gain_init", {"matched"});
  }
  return out;
}

// What the plan needs to know of a text.
struct TextFacts {
  std::string tokenizer;
  int vocab_size = 0;
  int64_t tokens = 0;
  double seconds = 0.0;  // to read it
};

TextFacts facts_of(const Budget& budget) {
  Config config;
  config.data.source = budget.source;
  config.model.seq_len = sizes.front().seq_len;
  CorpusSize size = measure_text(config);
  if (size.vocab_size <= most_characters) return {"char", size.vocab_size, size.tokens, size.seconds};
  config.data.tokenizer = TokenUnit::bytes;
  size = measure_text(config);
  return {"byte", size.vocab_size, size.tokens, size.seconds};
}

struct Horizon {
  Config config;
  int64_t steps = 0;
  double tokens = 0.0, params = 0.0;
};

// The steps that a size can make in `flops` operations, evaluations included.
Horizon horizon_of(const Budget& budget, const TextFacts& text, const Size& size, double flops) {
  Plan plan = make_plan(read_study(settings_of(budget, text.tokenizer, size, least_steps)), {});
  Horizon out{plan.trials.front().config};
  const int64_t held_out = text.tokens / n_folds;
  const double of_training = flops_of_step(out.config, text.vocab_size);
  const double of_evaluations = flops_of_run(out.config, text.vocab_size, held_out) - of_training * least_steps;
  const double tokens_of_step = static_cast<double>(size.batch_size) * size.seq_len;
  const double most = most_passes * static_cast<double>(text.tokens - held_out) / tokens_of_step;
  out.steps = static_cast<int64_t>(std::clamp((flops - of_evaluations) / of_training, 0.0, std::max(1.0, most)));
  out.tokens = static_cast<double>(out.steps) * tokens_of_step;
  out.params = static_cast<double>(count_parameters(out.config.model, out.config.norm, text.vocab_size).body);
  return out;
}

// The largest size whose training is long enough; the smallest where none is.
size_t best_size(const Budget& budget, const TextFacts& text, double flops) {
  for (size_t i = sizes.size(); i-- > 1;) {
    const Horizon horizon = horizon_of(budget, text, sizes[i], flops);
    if (horizon.steps >= least_steps && horizon.tokens >= tokens_per_param * horizon.params) return i;
  }
  return 0;
}

}  // namespace

std::optional<double> parse_duration(std::string_view text) {
  double seconds = 0.0;
  constexpr std::string_view units = "hms";  // in this order, each at most once
  constexpr std::array unit_seconds = {3600.0, 60.0, 1.0};
  size_t next_unit = 0;
  while (!text.empty()) {
    const size_t end = text.find_first_of(units);
    if (end == std::string_view::npos) return std::nullopt;
    const size_t unit = units.find(text[end]);
    const auto count = parse_number(text.substr(0, end));
    if (!count || !(*count >= 0.0) || *count > 1e6 || unit < next_unit) return std::nullopt;
    seconds += *count * unit_seconds[unit];
    next_unit = unit + 1;
    text.remove_prefix(end + 1);
  }
  return seconds > 0.0 ? std::optional(seconds) : std::nullopt;
}

StudySpec budget_study(const Budget& budget, const MeasureSpeed& measure) {
  const TextFacts text = facts_of(budget);
  const size_t variants = budget.schemes.empty() ? default_schemes.size() : budget.schemes.size();
  const double runs = static_cast<double>(variants) *
                      (static_cast<double>(rates.size()) + extensions + static_cast<double>(held_out_folds.size()));
  const double seconds = share * budget.seconds * budget.jobs / runs - start_seconds - text.seconds;
  // The speed depends on the size and the size on the speed: measured in the middle of the ladder, then at the size.
  size_t at = sizes.size() / 3;
  double flops = 0.0;
  for (int round = 0; round < 3; ++round) {
    flops = seconds * measure(horizon_of(budget, text, sizes[at], 0.0).config, text.vocab_size);
    const size_t found = best_size(budget, text, flops);
    if (found == at) break;
    at = found;
  }
  const Horizon horizon = horizon_of(budget, text, sizes[at], flops);
  if (seconds <= 0.0 || horizon.steps < least_steps)
    throw UsageError("--budget", concat("too short for ", variants, " schemes with ", rates.size(), " rates and ",
                                        held_out_folds.size(), " folds each: the smallest model gets ",
                                        std::max<int64_t>(0, horizon.steps), " steps, expected at least ", least_steps,
                                        ". Give more time, compare fewer schemes (--schemes), or use a longer text."));
  return read_study(settings_of(budget, text.tokenizer, sizes[at], horizon.steps));
}

}  // namespace normlab
