#include "normlab/study/run/cost.h"

#include <algorithm>
#include <queue>

#include "normlab/base/text.h"
#include "normlab/config/flops.h"
#include "normlab/config/parameters.h"

namespace normlab {

Table size_table(const Plan& plan, int vocab_size) {
  Table table{"Sizes and horizons, one row per variant",
              {{"variant", "variant", Align::left, Best::none},
               {"layers", "n_layers"},
               {"width", "d_model"},
               {"heads", "n_heads"},
               {"parameters", "n_params"},
               {"without embeddings", "n_body"},
               {"tokens", "n_tokens"},
               {"batch", "batch_size"},
               {"steps", "max_steps"},
               {"lr", "lr"},
               {"FLOP per trial", "flops"}},
              {}};
  for (size_t v = 0; v < plan.variants.size(); ++v) {
    const Config& config = plan.trials[v].config;  // the first fold and seed have all variants in order
    const ParameterCount count = count_parameters(config.model, config.norm, vocab_size);
    const double steps = static_cast<double>(config.train.max_steps), flops = steps * flops_of_step(config, vocab_size);
    const double tokens = steps * config.train.batch_size * config.train.accumulate * config.model.seq_len;
    const auto whole = [](auto value) { return Cell{concat(value), static_cast<double>(value)}; };
    const auto large = [](double value) { return Cell{si(value), value}; };
    table.rows.push_back({text_cell(plan.variants[v].label), whole(config.model.n_layers), whole(config.model.d_model),
                          whole(config.model.n_heads), large(static_cast<double>(count.total)),
                          large(static_cast<double>(count.body)), large(tokens), whole(config.train.batch_size),
                          whole(config.train.max_steps), number_cell(config.optim.lr), large(flops)});
  }
  return table;
}

std::vector<double> training_flops(const Plan& plan, int vocab_size) {
  std::vector<double> flops;
  for (const Trial& trial : plan.trials)
    flops.push_back(static_cast<double>(trial.config.train.max_steps) * flops_of_step(trial.config, vocab_size));
  return flops;
}

double busiest_slot(std::vector<double> flops, size_t slots) {
  std::sort(flops.rbegin(), flops.rend());
  std::priority_queue<double, std::vector<double>, std::greater<>> loads;
  for (size_t i = 0; i < std::min(slots, std::max<size_t>(1, flops.size())); ++i) loads.push(0);
  double busiest = 0;
  for (const double each : flops) {
    const double load = loads.top() + each;
    loads.pop();
    loads.push(load);
    busiest = std::max(busiest, load);
  }
  return busiest;
}

}  // namespace normlab
