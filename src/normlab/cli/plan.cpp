// normlab plan: what a study will cost here and on many machines, and what a fitted law says of larger budgets.
#include <algorithm>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/plan_jobs.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/cli/verbs.h"
#include "normlab/config/load_data.h"
#include "normlab/study/present/scaling_tables.h"
#include "normlab/study/run/cost.h"
#include "normlab/study/run/schedule.h"
#include "normlab/study/run/tuning.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

struct PlanCommand {
  ConfigOptions config;
  std::vector<std::string> studies, points;
  std::vector<double> budgets;
  int machines = 1, vocab = 0;
  double speed = 0;
  bool json = false, slurm = false, parallel = false;
};

// Of one trial beside others, operations/s; and how many run in parallel on a machine.
struct Speed {
  double flops_per_second = 0;
  int side_by_side = 1;
  std::string source;
};

Speed speed_here(const Plan& plan, const std::vector<double>& flops, int vocab_size, const PlanCommand& command) {
  if (command.speed > 0) return {command.speed, 1, "as given"};
  Speed speed{.side_by_side = default_jobs(plan), .source = "ten steps of the largest here"};
  const auto longest = static_cast<size_t>(std::max_element(flops.begin(), flops.end()) - flops.begin());
  speed.flops_per_second = measure_speed(plan.trials[longest].config, vocab_size, speed.side_by_side).flops_per_second;
  return speed;
}

Json cost_of_study(const PlanCommand& command) {
  const Plan plan = make_plan(read_study(command.config.settings()), "");
  const int vocab = command.vocab > 0 ? command.vocab : load_text(plan.trials.front().config).tokenizer.vocab_size();
  std::vector<double> flops = training_flops(plan, vocab);
  const Speed speed = speed_here(plan, flops, vocab, command);
  if (plan.spec.tune.wanted())
    for (const double each : training_flops(tuning_plan(plan), vocab)) flops.push_back(each);
  double total = 0;
  for (const double each : flops) total += each;
  const auto seconds_on = [&](int machines) {
    return busiest_slot(flops, static_cast<size_t>(machines) * static_cast<size_t>(speed.side_by_side)) /
           speed.flops_per_second;
  };
  const Table sizes = size_table(plan, vocab);
  if (!command.json) {
    print_line(concat(sizes.caption, "\n", plain_text(sizes)));
    print_line("");
    print_wrapped(concat(flops.size(), " trials", plan.spec.tune.wanted() ? ", tuning included, " : ", ", si(total),
                         "FLOP; ", speed.side_by_side, " in parallel on a machine at ", si(speed.flops_per_second),
                         "FLOP/s each (", speed.source, ")"));
    print_line(concat("one machine: ", clock_time(seconds_on(1))));
    if (command.machines > 1)
      print_line(concat(command.machines, " machines: ", clock_time(seconds_on(command.machines))));
  }
  return {{"trials", flops.size()},
          {"flops", total},
          {"flops_per_second", speed.flops_per_second},
          {"side_by_side", speed.side_by_side},
          {"machines", command.machines},
          {"seconds_on_one", seconds_on(1)},
          {"seconds_on_all", seconds_on(command.machines)},
          {"sizes", Json::parse(json(sizes))}};
}

Json paper_plan(const PlanCommand& command) {
  ScalingData data;
  for (const std::string& study : command.studies)
    add_study(data, load_results(load_plan(study)), CountedParams::total);
  for (const std::string& file : command.points) add_points(data, file);
  const ScalingAnalysis analysis = analyse_scaling(data, {});
  if (analysis.schemes.empty()) throw DataError("plan", join(analysis.notes, "; "));
  Table table{"The best use of each budget by the fitted laws, with 95 % intervals; an extrapolation beyond the runs",
              {{"scheme", "scheme", Align::left, Best::none},
               {"operations", "flops"},
               {"times the largest run", "multiple"},
               {"parameters", "n_params"},
               {"tokens", "n_tokens"},
               {"loss", "loss"}},
              {}};
  for (const SchemeFit& scheme : analysis.schemes) {
    double largest = 0;
    for (const ScalingRun& run : scheme.runs) largest = std::max(largest, run_flops(scheme, run));
    for (const double flops : command.budgets) {
      const auto cell = [&](double Optimum::*member) {
        const auto value = [&](const ScalingLaw& law) {
          return optimum(law, flops, scheme.flops_per_param_token).*member;
        };
        return Cell{estimate_text(value(scheme.fit.law), scheme.fit.interval(value)), value(scheme.fit.law)};
      };
      table.rows.push_back({text_cell(spoken(scheme.scheme)),
                            {si(flops), flops},
                            number_cell(flops / largest, 3),
                            cell(&Optimum::n_params),
                            cell(&Optimum::n_tokens),
                            cell(&Optimum::loss)});
    }
  }
  if (!command.json) print_wrapped(table.caption), print_line(plain_text(table));
  return Json::parse(json(table));
}

Exit plan_study(const PlanCommand& command) {
  if (command.slurm || command.parallel) {
    if (command.studies.size() != 1 || !command.config.files.empty() || !command.budgets.empty())
      throw UsageError("plan",
                       "--slurm and --parallel expect one study that was made with `normlab compare --prepare`.");
    return plan_jobs({.study = command.studies.front(),
                      .slurm = command.slurm,
                      .parallel = command.parallel,
                      .speed = command.speed});
  }
  const bool on_paper = !command.studies.empty() || !command.points.empty();
  if (on_paper == command.budgets.empty())
    throw UsageError("plan",
                     "--flops needs the runs to fit, and runs need --flops: name studies or --points FILE.csv.");
  if (!on_paper && command.config.files.empty())
    throw UsageError("plan", "nothing to plan: give --config STUDY.toml, or --flops with studies or --points.");
  Json out = Json::object();
  if (!command.config.files.empty()) out = cost_of_study(command);
  if (on_paper) out["budgets"] = paper_plan(command);
  if (command.json) print_json(out);
  return Exit::done;
}

}  // namespace

void add_plan(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("plan", "cost of a study, here and on many machines; larger budgets");
  auto command = std::make_shared<PlanCommand>();
  command->config.add_files_to(*verb);
  verb->add_option("study", command->studies,
                   "a prepared study, with --slurm or --parallel; studies whose law is used, with --flops")
      ->type_name("STUDY");
  verb->add_option("--points", command->points, "with --flops: CSV files of runs, as `normlab fit` reads them")
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb->add_option("--flops", command->budgets,
                   "budgets in operations, not run: size, tokens and loss on the compute-optimal frontier")
      ->check(number_above_zero())
      ->type_name("C");
  verb->add_option("--machines", command->machines, "number of machines like this one; default 1")
      ->check(whole_number(1, 1000000))
      ->type_name("N");
  verb->add_option("--speed", command->speed,
                   "operations/s of a machine that runs one trial at a time; default: "
                   "measured here")
      ->check(number_above_zero())
      ->type_name("X");
  verb->add_option("--vocab", command->vocab, "size of the vocabulary, if the text is not available")
      ->check(whole_number(1, 1 << 24))
      ->type_name("N");
  verb->add_flag("--slurm", command->slurm, "write DIR/slurm.sh, a job array that runs what is left of the study");
  verb->add_flag("--parallel", command->parallel, "print the line of GNU parallel that does the same");
  verb->add_flag("--json", command->json, "print it as JSON");
  verb->footer(
      "Prints every size that a [ladder] derives, with exact counts of parameters and training operations; evaluations "
      "are not counted. Nothing is written, except with --slurm.\n"
      "Examples:\n"
      "  normlab plan --config recipes/scaling-small.toml --machines 4\n"
      "  normlab plan --config recipes/scaling-paper.toml --vocab 50257 --speed 1e14 --machines 64\n"
      "  normlab plan studies/scaling --flops 1e18 1e21\n"
      "  normlab plan studies/lp --slurm\n");
  verb->callback([command, &exit] { exit = plan_study(*command); });
}

}  // namespace normlab
