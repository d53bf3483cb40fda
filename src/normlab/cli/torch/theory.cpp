// normlab theory: how the width of a head affects attention between random vectors, as a table and charts.
#include "normlab/probe/theory.h"

#include <cmath>
#include <filesystem>
#include <memory>

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/report/line_chart.h"

namespace normlab {
namespace {

struct TheoryOptions {
  std::string out;
  int64_t seed = 1;
  bool json = false;
};

using Curves = std::vector<std::pair<LogitRule, std::vector<TheoryPoint>>>;

Figure chart_of(const Curves& curves, const Caption& caption, const YAxis& y, double TheoryPoint::*value) {
  LineChart chart{caption, {{"width", "log2 of the width of a head, d"}}, y, {}};
  const auto styles = category_styles(curves.size());
  for (size_t i = 0; i < curves.size(); ++i) {
    Series series{.label = curves[i].first.name, .style = styles[i], .x = {{}}, .y = {}};
    for (const TheoryPoint& point : curves[i].second) {
      series.x[0].push_back(std::log2(static_cast<double>(point.d_head)));
      series.y.push_back(point.*value);
    }
    chart.series.push_back(std::move(series));
  }
  return figure(chart);
}

std::vector<Figure> charts_of(const Curves& curves) {
  const std::string note = "Random queries and keys of standard normal entries, 64 keys, 16 draws.";
  return {chart_of(curves,
                   {"theory-spread", "Standard deviation of the logits", note,
                    "Curves of the standard deviation of logits against head width."},
                   {"standard deviation", true, true}, &TheoryPoint::logit_std),
          chart_of(curves,
                   {"theory-frobenius", "Frobenius norm of the logits",
                    concat(note, " Root mean square over the draws; 64 is where every logit is about 1."),
                    "Curves of the Frobenius norm of the logits against head width."},
                   {"||S||_F", true, true}, &TheoryPoint::frobenius),
          chart_of(curves,
                   {"theory-entropy", "Relative entropy of attention", concat(note, " 0 is one key, 1 is uniform."),
                    "Curves of relative entropy against head width."},
                   {"relative entropy", false}, &TheoryPoint::relative_entropy),
          chart_of(curves,
                   {"theory-gradient", "Gradient to a query", concat(note, " Median over queries of its norm."),
                    "Curves of the gradient norm against head width."},
                   {"median gradient norm", true, true}, &TheoryPoint::grad_q)};
}

Exit show_theory(const TheoryOptions& options) {
  Curves curves;
  for (const LogitRule& rule : logit_rules())
    curves.emplace_back(
        rule, theory_points(rule, {4, 8, 16, 32, 64, 128, 256, 512, 1024}, static_cast<uint64_t>(options.seed)));
  if (!options.out.empty()) {
    std::error_code problem;
    std::filesystem::create_directories(options.out, problem);
    if (problem) throw Error(options.out, concat("cannot create the folder: ", problem.message(), "."));
    for (const Figure& each : charts_of(curves))
      write_file_atomically(std::filesystem::path(options.out) / (each.caption.id + ".svg"), svg_file(each));
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (!options.json)
    print_line("logits               d     std     ||S||_F   largest   bound     entropy   saturated gradient");
  for (const auto& [rule, points] : curves)
    for (const TheoryPoint& p : points) {
      all.push_back({{"logits", rule.name},
                     {"d_head", p.d_head},
                     {"logit_std", p.logit_std},
                     {"frobenius", p.frobenius},
                     {"max_logit", p.max_logit},
                     {"bound", p.bound},
                     {"relative_entropy", p.relative_entropy},
                     {"saturated", p.saturated},
                     {"grad_q", p.grad_q}});
      const auto column = [](const std::string& text, size_t width) {
        return text + std::string(text.size() < width ? width - text.size() : 1, ' ');
      };
      if (!options.json)
        print_line(concat(column(rule.name, 21), column(concat(p.d_head), 6), column(significant(p.logit_std, 3), 8),
                          column(significant(p.frobenius, 3), 10), column(significant(p.max_logit, 3), 10),
                          column(std::isfinite(p.bound) ? significant(p.bound, 3) : "none", 10),
                          column(significant(p.relative_entropy, 3), 10), column(significant(p.saturated, 3), 10),
                          significant(p.grad_q, 3)));
    }
  if (options.json) print_json(all);
  return Exit::done;
}

}  // namespace

void add_theory(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "theory");
  auto options = std::make_shared<TheoryOptions>();
  verb->add_option("-o,--out", options->out, "folder for charts as SVG; default: no charts")->type_name("DIR");
  verb->add_option("--seed", options->seed, "of the random vectors")->check(whole_number(0));
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->footer(
      "The claims of docs/theory.md, measured: spread, Frobenius norm and bound of the logits, entropy, share of "
      "saturated rows, and "
      "the\n"
      "median over queries of the gradient's norm, for four definitions of the logits.\n"
      "Examples:\n"
      "  normlab theory\n"
      "  normlab theory --out docs/images");
  verb->callback([options, &exit] { exit = show_theory(*options); });
}

}  // namespace normlab
