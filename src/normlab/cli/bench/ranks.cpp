// normlab bench ranks: a training step on several ranks, beside its computation and its sums alone; and what the cost
// model makes of it on more ranks.
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/bench/step_runner.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/with_ranks.h"
#include "normlab/ranks/cost_model.h"
#include "normlab/report/table.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

struct RanksOptions {
  std::string config = "L", scheme;
  double bandwidth = 0.0, latency = 0.0;
  int repeat = 10;
  bool json = false;
};

// Seconds of the slowest rank, which all start together.
double timed_together(RankGroup* ranks, const std::function<void()>& work) {
  if (!ranks) return timed(work);
  wait_for_all(*ranks);
  double slowest = 0.0;
  for (const std::string& each : ranks->gather(format_number(timed(work))))
    slowest = std::max(slowest, parse_number(each).value_or(0.0));
  return slowest;
}

// The fastest repetition of each, in turn: on a shared machine only what runs side by side can be compared.
struct Measured {
  double compute = 1e300, gradients = 1e300, sums = 1e300, step = 1e300, message = 1e300;
  double backward() const { return gradients * 2.0 / 3.0; }  // a forward pass has half of its operations
};

Measured measure(RankGroup* ranks, const RanksOptions& options, Config config) {
  const int size = ranks ? ranks->size() : 1;
  if (config.train.batch_size % size != 0)
    throw UsageError("--config", concat("got train.batch_size = ", config.train.batch_size, ", expected a multiple of ",
                                        size, ", the number of ranks."));
  std::optional<StepRunner> together;
  if (ranks) together.emplace(config).share_with(*ranks);
  config.train.batch_size /= size;
  StepRunner alone(config);
  Measured best;
  const auto note = [&](double& fastest, const std::function<void()>& work) {
    fastest = std::min(fastest, timed_together(ranks, work));
  };
  for (int i = -1; i < options.repeat && !stop_requested(); ++i) {
    note(best.compute, [&] { alone.step(); });
    note(best.gradients, [&] { alone.differentiate(); });
    if (ranks) {
      note(best.step, [&] { together->step(); });
      note(best.sums, [&] { together->sum_gradients(); });
      note(best.message, [&] { wait_for_all(*ranks); });
    }
    if (i < 0) best = {};  // the first warms up
  }
  return best;
}

Table projection(const RankCosts& costs) {
  Table table{concat("A projection by the cost model, with as many rows per rank as here: ", si(costs.bandwidth),
                     "B/s, latency ", significant(1e6 * costs.latency, 3), " us"),
              {{"ranks", "ranks"}, {"sums, ms", "sums"}, {"step, ms", "step"}, {"efficiency, %", "efficiency"}},
              {}};
  for (int ranks = 1; ranks <= 1024; ranks *= 2)
    table.rows.push_back({count_cell(static_cast<size_t>(ranks)), number_cell(1e3 * seconds_of_sums(costs, ranks), 3),
                          number_cell(1e3 * seconds_of_step(costs, ranks), 3),
                          number_cell(100.0 * efficiency(costs, ranks), 3)});
  return table;
}

// Hidden: of what could be, the shorter of the two.
Json measured_json(const Measured& times, const RankCosts& costs, int size) {
  const double hidden = (times.compute + times.sums - times.step) / std::min(times.compute, times.sums);
  return {{"ranks", size},
          {"compute_seconds", times.compute},
          {"backward_seconds", times.backward()},
          {"sum_seconds", times.sums},
          {"step_seconds", times.step},
          {"predicted_seconds", seconds_of_step(costs, size)},
          {"step_over_larger", times.step / std::max(times.compute, times.sums)},
          {"hidden_share", std::clamp(hidden, 0.0, 1.0)}};
}

void print_measured(const Json& got, const RankCosts& costs) {
  const auto ms = [&](const char* key) { return concat(significant(1e3 * got[key].get<double>(), 3), " ms"); };
  const auto percent = [&](const char* key) { return concat(fixed(100.0 * got[key].get<double>(), 0), " %"); };
  print_line(concat("computation  ", ms("compute_seconds"), ", of it backward ", ms("backward_seconds")));
  print_line(concat("sums         ", ms("sum_seconds"), " for ", si(costs.gradient_bytes), "B"));
  print_line(concat("step         ", ms("step_seconds"), ", ", significant(got["step_over_larger"].get<double>(), 3),
                    " times the larger; the model says ", ms("predicted_seconds")));
  print_line(concat("hidden       ", percent("hidden_share"), " of the smaller of computation and sums"));
}

Exit bench_ranks(const RanksOptions& options, RankGroup* ranks) {
  use_threads(1);  // of each rank
  const Config config = bench_config(options.config, options.scheme, "fused");
  if (!ranks && options.bandwidth == 0.0)
    throw UsageError("bench ranks",
                     "this is one process. Start several with mpirun, or give --bandwidth and --latency.");
  const Measured times = measure(ranks, options, config);
  if (stop_requested()) return Exit::stopped;
  if (ranks && ranks->rank() > 0) return Exit::done;
  StepRunner model(config);
  const int size = ranks ? ranks->size() : 1;
  RankCosts costs{.compute = times.compute,
                  .beside = times.backward(),
                  .gradient_bytes = 4.0 * static_cast<double>(model.entries()),
                  .late_bytes = 4.0 * static_cast<double>(model.entries() - model.early_entries())};
  costs.latency = options.latency > 0.0 || !ranks ? options.latency : times.message / 2;
  costs.bandwidth = options.bandwidth;
  if (costs.bandwidth == 0.0) {  // so that the sums take as long as they did
    costs.bandwidth = 1.0;
    RankCosts silent = costs;
    silent.gradient_bytes = 0.0;
    const double sending = std::max(1e-9, times.sums - seconds_of_sums(silent, size));
    silent = costs, silent.latency = 0.0;
    costs.bandwidth = seconds_of_sums(silent, size) / sending;
  }
  const Table table = projection(costs);
  Json out = ranks ? measured_json(times, costs, size) : Json{{"compute_seconds", times.compute}};
  if (options.json) {
    out["bandwidth"] = costs.bandwidth, out["latency"] = costs.latency;
    out["projection"] = Json::parse(json(table));
    print_json(out);
    return Exit::done;
  }
  if (ranks) print_measured(out, costs), print_line("");
  print_wrapped(table.caption);
  print_line(plain_text(table));
  return Exit::done;
}

}  // namespace

void add_bench_ranks(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("ranks", "a step on the ranks of mpirun, and a projection to 1,024");
  auto options = std::make_shared<RanksOptions>();
  verb->add_option("-c,--config", options->config, "L, S or a recipe file; default L")->type_name("L|S|FILE");
  verb->add_option("--scheme", options->scheme, "a scheme, with p after a colon: lp:2.5")->type_name("NAME[:P]");
  verb->add_option("--bandwidth", options->bandwidth, "of the projection, bytes/s; default: as measured")
      ->check(number_above_zero())
      ->type_name("X");
  verb->add_option("--latency", options->latency, "of the projection, seconds; default: as measured")
      ->check(number_above_zero())
      ->type_name("X");
  verb->add_option("--repeat", options->repeat, "repetitions; default 10, of which the fastest counts")
      ->check(whole_number(1, 1000000))
      ->type_name("N");
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->footer(
      "Each rank has one thread and its share of train.batch_size. The computation of a rank, the sums of gradients "
      "and the step with both are measured in turn (docs/clusters.md). One process gives the projection alone.\n"
      "Examples:\n"
      "  mpirun -n 2 --host a,b normlab bench ranks --config recipes/shakespeare.toml\n"
      "  normlab bench ranks --bandwidth 1.25e9 --latency 2e-5");
  verb->callback(
      [options, &exit] { exit = with_ranks([&](RankGroup* ranks) { return bench_ranks(*options, ranks); }); });
}

}  // namespace normlab
