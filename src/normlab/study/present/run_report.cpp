// The report of runs: the tables, the sentence, and the same page as that of a study.
#include "normlab/study/present/run_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/report/palette.h"
#include "normlab/study/analyse/study_text.h"
#include "normlab/study/present/bleu_report.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

bool are_translators(const StudyResults& results) {
  return std::all_of(results.trials.begin(), results.trials.end(), [](const auto& run) { return !run.bleus.empty(); });
}

double best_bleu(const TrialResult& run) {
  double best = 0.0;
  for (const BleuPoint& point : run.bleus) best = std::max(best, point.bleu);
  return best;
}

int64_t best_step(const TrialResult& run) {
  return std::min_element(run.curve.begin(), run.curve.end(),
                          [](const EvalPoint& a, const EvalPoint& b) { return a.loss < b.loss; })
      ->step;
}

Cell decimal_cell(double value, int decimals) { return {std::isnan(value) ? dash : fixed(value, decimals), value}; }

Table loss_rows(const RunComparison& runs) {
  const StudyResults& results = runs.results;
  Table table{"Validation loss, nats per token",
              {{"run", "", Align::left},
               {"scheme", "", Align::left},
               {"final loss", "final_loss", Align::right, runs.incomparable.empty() ? Best::lowest : Best::none},
               {"lowest", "best_loss"},
               {"at step", "best_step"},
               {"steps", "step"},
               {"state", "", Align::left},
               {"training", "train_seconds"}},
              {}};
  const bool translators = are_translators(results);
  if (translators)
    table.columns.insert(table.columns.end() - 1, {{"dev BLEU", "dev_bleu"}, {"test BLEU", "test_bleu"}});
  for (size_t i = 0; i < results.trials.size(); ++i) {
    const TrialResult& run = results.trials[i];
    const Config& config = results.plan.trials[i].config;
    const double final_loss = is_finished(run) ? run.record.val_loss.value_or(not_a_number) : not_a_number;
    table.rows.push_back({text_cell(results.plan.variants[i].label),
                          text_cell(scheme_label(config.norm)),
                          decimal_cell(final_loss, 4),
                          decimal_cell(run.record.best_loss.value_or(not_a_number), 4),
                          run.curve.empty() ? text_cell(dash) : count_cell(static_cast<size_t>(best_step(run))),
                          {concat(run.record.step, "/", config.train.max_steps), static_cast<double>(run.record.step)},
                          text_cell(is_finished(run)                             ? "finished"
                                    : run.record.status == TrialStatus::diverged ? "diverged"
                                                                                 : "unfinished"),
                          {spoken_time(run.record.train_seconds), run.record.train_seconds}});
    if (translators)
      table.rows.back().insert(table.rows.back().end() - 1, {decimal_cell(best_bleu(run), 2),
                                                             decimal_cell(run.test_bleu.value_or(not_a_number), 2)});
  }
  return table;
}

// Keys that some run reads and in which they differ; one row each.
Table setting_rows(const StudyResults& results) {
  Table table{"Settings that differ", {{"key", "", Align::left}}, {}};
  std::vector<Config> configs;
  for (const Trial& run : results.plan.trials) configs.push_back(run.config);
  std::vector<FieldList> lists;
  for (Config& config : configs) lists.push_back(fields(config));
  for (const Variant& run : results.plan.variants) table.columns.push_back({run.label, "", Align::left});
  for (size_t f = 0; f < lists.front().fields().size(); ++f) {
    std::vector<Cell> row = {text_cell(lists.front().fields()[f].key)};
    for (const FieldList& list : lists) {
      const Field& field = list.fields()[f];
      row.push_back(text_cell(!list.is_read(field) ? dash : field.get().empty() ? "empty" : field.get()));
    }
    const bool same =
        std::all_of(row.begin() + 1, row.end(), [&](const Cell& cell) { return cell.text == row[1].text; });
    if (!same) table.rows.push_back(std::move(row));
  }
  return table;
}

bool differ_in_seed_only(const Table& settings) {
  return settings.rows.size() == 1 && settings.rows.front().front().text == seed_key;
}

constexpr const char* limits =
    "Single runs do not show whether a difference would hold with another seed or fold. A study with several folds "
    "tests it: normlab compare --config STUDY.toml.";

struct Ranked {
  std::string name;
  double value;
};

void say_what_they_show(const RunComparison& runs, RunReport& report) {
  const StudyResults& results = runs.results;
  if (!runs.incomparable.empty()) {
    report.sentence = concat("The losses of these runs cannot be compared: ", join(runs.incomparable, "; "), ".");
    return;
  }
  const bool translators = are_translators(results);
  const bool tested = translators && std::all_of(results.trials.begin(), results.trials.end(),
                                                 [](const auto& run) { return run.test_bleu.has_value(); });
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < results.trials.size(); ++i) {
    const TrialResult& run = results.trials[i];
    if (!is_finished(run)) continue;
    const double value = tested ? -*run.test_bleu : translators ? -best_bleu(run) : *run.record.val_loss;
    ranked.push_back({results.plan.variants[i].label, value});
  }
  if (ranked.size() < 2) {
    report.sentence = concat("There is nothing to compare yet: ", ranked.size(), " of ",
                             plural(results.trials.size(), "run"), " has finished.");
    return;
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.value < b.value; });
  const double range = ranked.back().value - ranked.front().value;
  const std::string what = tested ? "BLEU of the test text" : translators ? "BLEU" : "final validation loss";
  const auto amount = [&](double value) {
    return translators ? fixed(std::fabs(value), 2) : concat(fixed(value, 3), " nats");
  };
  if (differ_in_seed_only(report.settings)) {
    report.sentence = concat("These runs differ in their seed only: their ", what, " spans ", amount(range),
                             ", which is the chance of initial weights and batches.");
    return;
  }
  report.sentence = concat(ranked.front().name, " has the ", translators ? "highest " : "lowest ", what, ", ",
                           amount(ranked.front().value), ": ", amount(ranked[1].value - ranked[0].value),
                           translators ? " above " : " below ", ranked[1].name, ".");
  report.detail = limits;
}

std::string make_json(const RunComparison& runs, const RunReport& report) {
  Json out = {{"sentence", report.sentence},
              {"comparable", runs.incomparable.empty()},
              {"incomparable", runs.incomparable},
              {"unfinished", runs.unfinished},
              {"unreadable", runs.unreadable},
              {"runs", Json::parse(json(report.losses))},
              {"settings", Json::parse(json(report.settings))},
              {"curves", Json::object()}};
  for (const TrialResult& run : runs.results.trials) {
    Json& curve = out["curves"][run.folder] = Json::array();
    for (const EvalPoint& point : run.curve) curve.push_back({point.step, point.loss});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string make_markdown(const RunReport& report, const std::vector<Part>& parts) {
  std::string out = concat("# Runs compared\n\n**", markdown_text(report.sentence), "**\n");
  if (!report.detail.empty()) out += concat("\n", markdown_text(report.detail), "\n");
  for (const std::string& notice : report.notices) out += concat("\n> ", markdown_text(notice), "\n");
  return out + markdown_of(parts);
}

}  // namespace

RunReport make_run_report(const RunComparison& runs, const std::string& command) {
  const StudyResults& results = runs.results;
  RunReport report{.sentence = {},
                   .detail = {},
                   .notices = runs.unreadable,
                   .losses = loss_rows(runs),
                   .settings = setting_rows(results),
                   .json = {}};
  report.notices.insert(report.notices.end(), runs.unfinished.begin(), runs.unfinished.end());
  say_what_they_show(runs, report);
  report.json = make_json(runs, report);

  const Analysis no_tests;
  const Grid grid;
  const GridStyles styles{category_styles(results.trials.size()), {}};
  const ChartInput input{results, no_tests, grid, styles};
  const Figure loss = loss_chart(input, {"loss", "Validation loss during training", "One curve per run.",
                                         concat("Curves of validation loss against training step, one for each of ",
                                                results.trials.size(), " runs.")});
  const std::optional<Figure> bleu = bleu_chart(input);
  std::vector<Part> parts = {{"Losses", "", {&loss}, {report.losses}}, {"Settings that differ", ""}};
  if (bleu) parts.front().figures.push_back(&*bleu);
  if (report.settings.rows.empty())
    parts.back().text = "None: these runs have the same configuration.";
  else
    parts.back().tables = {report.settings};

  const auto finished = std::count_if(results.trials.begin(), results.trials.end(), is_finished);
  Page page{.title = "Runs compared",
            .subtitle = concat(plural(results.trials.size(), "run"), ", ", finished, " finished"),
            .verdict = unbroken(report.sentence),
            .detail = unbroken(report.detail),
            .figures = {},
            .notices = report.notices,
            .sections = sections_of(parts),
            .command = command,
            .footer = provenance_lines(results.provenance)};
  report.files = charts_of(parts);
  report.files.emplace_back("runs.csv", csv(report.losses));
  report.files.emplace_back("report.json", report.json);
  report.files.emplace_back("report.md", make_markdown(report, parts));
  report.files.emplace_back("report.html", render(page));
  return report;
}

}  // namespace normlab
