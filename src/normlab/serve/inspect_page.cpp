#include "normlab/serve/inspect_page.h"

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/serve/markup.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

// What the page says, by how far the inspection is.
std::string message_of(const Inspection& inspection, bool possible, bool busy) {
  switch (inspection.state) {
    case InspectionState::computing:
      return "The attention of this run is being computed. The page appears here when it is done.";
    case InspectionState::failed:
      return inspection.problem;
    default:
      break;
  }
  if (!possible)
    return "This run has not been inspected yet. The command below writes the page, which then appears here.";
  return busy ? "Another run is being inspected. Try again when that is done."
              : "This run has not been inspected yet. The button computes the page without writing anything into the "
                "folder; the command writes it.";
}

}  // namespace

bool has_inspect_page(const ServedFolder& folder, const fs::path& run) {
  std::error_code problem;
  return fs::is_regular_file(run / "inspect.html", problem) && folder.holds(run / "inspect.html");
}

bool may_inspect(const ServedFolder& folder, const fs::path& run, const Inspections& inspections) {
  if (!inspections.possible() || has_inspect_page(folder, run)) return false;
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(run / "checkpoints", problem), end; !problem && entry != end;
       entry.increment(problem))
    if (!folder.holds(entry->path())) return false;
  return !problem && folder.holds(run / "checkpoints");
}

Answer inspect_answer(const ServedFolder& folder, const fs::path& run, const Inspections& inspections) {
  if (has_inspect_page(folder, run))
    return {.body = shared_text(read_file(run / "inspect.html")), .policy = security_policy(false)};
  const Inspection inspection = inspections.of(run);
  if (inspection.state == InspectionState::done) return {.body = inspection.page, .policy = security_policy(false)};
  const std::string name = folder.relative(run);
  const bool possible = may_inspect(folder, run, inspections);
  Page page{.title = concat("Attention of ", name.empty() ? folder.name() : name),
            .subtitle = {},
            .verdict = {},
            .detail = {},
            .figures = {},
            .notices = {message_of(inspection, possible, inspections.busy())},
            .sections = {},
            .command = {},
            .footer = {},
            .live = true,
            .trail = {{folder.name(), "/"}, {name.empty() ? "run" : name, run_address(name)}}};
  std::vector<Html> ways;
  if (possible && inspection.state != InspectionState::computing)
    ways.push_back(post_form(inspect_address(name), "Compute the page"));
  ways.push_back(code_block(concat("normlab inspect '", replace_all(run.string(), "'", "'\\''"), "'")));
  page.sections.push_back({"Inspect it", "", ways});
  return {.body = shared_text(render(page)), .next_look = active_seconds};
}

}  // namespace normlab
