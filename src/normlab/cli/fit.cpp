// normlab fit: scaling laws of studies and tables, with intervals.
#include <filesystem>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"
#include "normlab/study/present/scaling_json.h"
#include "normlab/study/present/scaling_report.h"
#include "normlab/study/present/scaling_tables.h"
#include "normlab/study/present/scaling_verdict.h"

namespace normlab {
namespace {

struct FitCommand {
  std::vector<std::string> studies, points;
  std::string params = "total", bootstrap = "auto", out;
  FitOptions fit;
  bool json = false;
};

CountedParams counted_of(const std::string& text) {
  if (text == "total") return CountedParams::total;
  if (text == "body") return CountedParams::body;
  throw UsageError("--params", concat("got '", text, "', expected total or body."));
}

Bootstrap bootstrap_of(const std::string& text) {
  for (size_t i = 0; i < std::size(bootstrap_names); ++i)
    if (text == bootstrap_names[i]) return static_cast<Bootstrap>(i);
  throw UsageError("--bootstrap", concat("got '", text, "', expected auto, residual, wild or case."));
}

void print_section(const Table& table) {
  if (table.rows.empty()) return;
  print_line("");
  print_wrapped(table.caption);
  print_line(plain_text(table));
}

Exit fit_laws(const FitCommand& command) {
  if (command.studies.empty() && command.points.empty())
    throw UsageError("fit", "name the folder of a study, or --points FILE.csv.");
  const CountedParams counted = counted_of(command.params);
  FitOptions options = command.fit;
  options.bootstrap = bootstrap_of(command.bootstrap);
  ScalingData data;
  for (const std::string& study : command.studies) add_study(data, load_results(load_plan(study)), counted);
  for (const std::string& file : command.points) add_points(data, file);
  const ScalingAnalysis analysis = analyse_scaling(data, options);
  if (!command.out.empty()) write_report(command.out, make_scaling_report(analysis, command_line()));
  if (command.json) {
    print_line(trim(scaling_json(analysis)));
    return Exit::done;
  }
  print_wrapped(scaling_verdict(analysis));
  for (const std::string& sentence : scaling_findings(analysis)) print_wrapped(concat("- ", sentence));
  for (const Table& table :
       {coefficient_table(analysis), goodness_table(analysis), projection_table(analysis), batch_table(analysis)})
    print_section(table);
  for (const std::string& reason : bootstrap_texts(analysis)) print_line(concat("\n", reason));
  for (const std::string& note : analysis.notes) print_wrapped(concat("note: ", note));
  if (!command.out.empty())
    print_line(concat("\nreport: ", (std::filesystem::path(command.out) / "scaling.html").string(),
                      ", scaling.md, fit.json, points.csv; charts/"));
  return Exit::done;
}

}  // namespace

void add_fit(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("fit", "scaling laws: loss against parameters, tokens and compute");
  auto command = std::make_shared<FitCommand>();
  verb->add_option("study", command->studies, "folders of studies, such as those of a [ladder]")->type_name("STUDY");
  verb->add_option("--points", command->points,
                   "CSV files with the columns n_params,n_tokens,loss and, if known, scheme,flops")
      ->allow_extra_args(false)
      ->type_name("FILE");
  verb->add_option("--params", command->params,
                   "N of a study's runs: total, or body, without embeddings and output head; default total")
      ->type_name("COUNT");
  verb->add_option("--delta", command->fit.delta, "where the Huber loss of log loss turns linear; default 0.001")
      ->check(number_above_zero())
      ->type_name("X");
  verb->add_option(
          "--bootstrap", command->bootstrap,
          "for the intervals: residual, wild or case; auto: residual or case, chosen by the residuals' variance; "
          "default auto")
      ->type_name("KIND");
  verb->add_option("--resamples", command->fit.resamples, "of the bootstrap; default 1000")
      ->check(whole_number(100, 1000000))
      ->type_name("N");
  verb->add_option("--seed", command->fit.seed, "of the bootstrap; default 0")->type_name("N");
  verb->add_option("-o,--out", command->out, "write a page, its charts, the coefficients and the points there")
      ->type_name("DIR");
  verb->add_flag("--json", command->json, "print the coefficients and their intervals as JSON");
  verb->footer(
      "L(N, D) = floor + a_params / N^exp_params + b_tokens / D^exp_tokens (Hoffmann et al.) with the Huber loss on "
      "log loss; Kaplan et al.'s form for comparison; the compute-optimal frontier; with several schemes, whether they "
      "share their exponents and the advantage of each; with several batch sizes, the critical one (docs/scaling.md).\n"
      "Examples:\n"
      "  normlab fit studies/scaling --out studies/scaling/fit\n"
      "  normlab fit studies/scaling --params body --json\n"
      "  normlab fit --points losses.csv\n");
  verb->callback([command, &exit] { exit = fit_laws(*command); });
}

}  // namespace normlab
