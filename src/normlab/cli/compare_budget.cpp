#include "normlab/cli/compare_budget.h"

#include <filesystem>

#include "normlab/base/cores.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/config/parameters.h"
#include "normlab/study/run/budget.h"

namespace normlab {

namespace fs = std::filesystem;

StudySpec study_of_budget(const BudgetOptions& options) {
  const auto seconds = parse_duration(options.time);
  if (!seconds)
    throw UsageError("--budget", concat("got '", options.time, "', expected a time such as 15m, 90s or 1h30m."));
  if (options.config.data.empty())
    throw UsageError("--budget", "no text given. Name it: `normlab compare --data my.txt --budget 15m`.");
  if (!options.config.files.empty() || !options.config.sets.empty())
    throw UsageError("--budget", "chooses model, steps and rates itself. Leave out --config and --set, or --budget.");
  const int jobs = options.jobs > 0 ? options.jobs : core_count();  // one thread each
  const auto measure = [&](const Config& config, int vocab_size) {
    log_line(concat("measuring ", jobs, " trials in parallel: ", config.model.n_layers, " layers, width ",
                    config.model.d_model));
    return measure_speed(config, vocab_size, jobs).flops_per_second;
  };
  const std::string& data = options.config.data;
  const std::string source = fs::exists(data) ? fs::absolute(data).lexically_normal().string() : data;
  return budget_study({.source = source, .seconds = *seconds, .jobs = jobs, .schemes = options.schemes}, measure);
}

void show_budget(const Plan& plan, const StudyText& text, const std::string& time) {
  const Config& config = plan.trials.front().config;
  const double runs = static_cast<double>(plan.trials.size() + cost_of_tuning(plan, text).trials);
  log_line(concat("model: ", config.model.n_layers, " layers, ", config.model.n_heads, " heads, width ",
                  config.model.d_model, ", window ", config.model.seq_len, "; ",
                  si(static_cast<double>(count_parameters(config.model, config.norm, text.vocab_size).total)),
                  " parameters, ", config.train.max_steps, " steps of ", config.train.batch_size, " windows"));
  log_line(concat("plan: ", plan.variants.size(), " schemes, each tuned over ", plan.spec.tune.values.size(),
                  " learning rates, then trained on ", plan.folds.size(), " folds: ", runs, " trainings, planned for ",
                  time));
}

}  // namespace normlab
