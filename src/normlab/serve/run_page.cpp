#include "normlab/serve/run_page.h"

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/report/svg.h"
#include "normlab/serve/inspect_page.h"
#include "normlab/serve/markup.h"
#include "normlab/serve/run_curves.h"
#include "normlab/study/run/study_folder.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// The folder, and the study that a trial belongs to.
std::vector<Link> trail_of(const ServedFolder& folder, const fs::path& run) {
  std::vector<Link> trail = {{folder.name(), "/"}};
  for (fs::path above = run; above != folder.root();) {
    above = above.parent_path();
    if (!is_study(above)) continue;
    const std::string path = folder.relative(above);
    trail.push_back({path.empty() ? "study" : path, study_address(path)});
    break;
  }
  return trail;
}

std::vector<KeyFigure> figures_of(const RunSummary& summary) {
  std::vector<KeyFigure> figures;
  if (summary.best_loss)
    figures.push_back({fixed(*summary.best_loss, 4), concat("lowest validation loss, at step ", summary.best_step)});
  if (summary.val_loss) figures.push_back({fixed(*summary.val_loss, 4), "last validation loss"});
  if (summary.loss) figures.push_back({fixed(*summary.loss, 4), "last training loss"});
  if (summary.tokens_per_second > 0) figures.push_back({si(summary.tokens_per_second), "tokens/s"});
  return figures;
}

Html progress_of(const ServedFolder& folder, const fs::path& run, const RunSummary& summary,
                 const Inspections& inspections) {
  std::vector<Html> said = {state_mark(summary.state), plain(concat("step ", summary.step, " of ", summary.max_steps))};
  if (const auto left = summary.seconds_left()) said.push_back(plain(concat("about ", spoken_time(*left), " left")));
  if (summary.changed > 0) said.push_back({concat("last row ", time_mark(summary.changed).text)});
  const std::string address = inspect_address(folder.relative(run)), words = "inspect its attention";
  said.push_back(may_inspect(folder, run, inspections) ? post_form(address, words) : anchor(words, address));
  return progress_block(summary.state, summary.share(), said);
}

std::string setup_of(const Config& config) {
  return concat(config.model.n_layers, " layers of ", config.model.n_heads, " heads, width ", config.model.d_model,
                "; trained on ", fs::path(config.data.source).filename().string(), ".");
}

}  // namespace

LivePage run_page(const ServedFolder& folder, const fs::path& run, Summaries summaries, const HeldLocks& locks,
                  const Inspections& inspections) {
  if (!files_are_inside(folder, run)) throw DataError(folder.relative(run), "a link leads out of the folder.");
  const RunSummary summary = summaries.runs.of(run, locks);
  const std::string name = folder.relative(run);
  LivePage out{.page = {.title = name.empty() ? folder.name() : name,
                        .subtitle = summary.scheme,
                        .verdict = {},
                        .detail = {},
                        .figures = figures_of(summary),
                        .notices = {},
                        .sections = {},
                        .command = {},
                        .footer = {},
                        .wide = true,
                        .live = true,
                        .trail = trail_of(folder, run),
                        .progress = progress_of(folder, run, summary, inspections)},
               .active = summary.state == RunState::running};
  Page& page = out.page;
  if (!summary.problem.empty()) page.notices.push_back(summary.problem);
  if (summary.state == RunState::damaged) return out;
  const Config config = stored_config(run / "config.toml");
  page.setup = setup_of(config);
  if (fs::is_regular_file(run / "metrics.jsonl")) {
    const RunCharts charts = draw_run(run / "metrics.jsonl");
    page.sections.push_back({"Losses", "", {charts.losses}});
    if (!charts.steps.empty()) page.sections.push_back({"Steps", "", {columns(charts.steps)}});
    if (!charts.diagnostics.empty())
      page.sections.push_back({"Diagnostics",
                               "What the probes measured, one curve per layer. normlab config explain metrics defines "
                               "them; metrics.jsonl has all values.",
                               {columns(charts.diagnostics)}});
  }
  page.sections.push_back({"Set-up", "", {collapsed("config.toml", code_block(to_toml(config)))}});
  return out;
}

}  // namespace normlab
