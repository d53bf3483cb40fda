// normlab check: is what is on disk whole?
#include "normlab/study/analyse/check.h"

#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"
#include "normlab/study/run/plan.h"

namespace normlab {
namespace {

struct CheckOptions {
  std::vector<std::string> paths;
  bool json = false;
};

Exit check_paths(const CheckOptions& options) {
  auto out = nlohmann::ordered_json::array();
  size_t faults = 0;
  for (const std::string& path : options.paths) {
    Findings found;
    try {
      found = check_path(path);
    } catch (const DataError& error) {  // the other paths are checked all the same
      found.faults.emplace_back(error.what());
    }
    faults += found.faults.size();
    out.push_back({{"path", path}, {"seen", found.seen}, {"faults", found.faults}});
    if (options.json) continue;
    for (const std::string& fault : found.faults) print_line(fault);
    const std::string seen = found.seen.empty() ? "" : concat(" (", join(found.seen, ", "), ")");
    print_line(concat(path, ": ", found.faults.empty() ? "nothing wrong" : plural(found.faults.size(), "fault"), seen));
  }
  if (options.json) print_json(out);
  return faults == 0 ? Exit::done : Exit::data;
}

}  // namespace

void add_check(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("check", "is a run, a study or a file whole? nothing is changed");
  auto options = std::make_shared<CheckOptions>();
  verb->add_option("path", options->paths,
                   "runs, checkpoints, studies, or files: safetensors, TOML, JSON, metrics.jsonl")
      ->required()
      ->type_name("PATH");
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->footer(
      "Checks checksums, headers of tensors, values that are not finite, steps, rows of metrics, links and\n"
      "configurations. Exit code 3: something is wrong.\n"
      "Examples:\n"
      "  normlab check runs/lp3\n"
      "  normlab check runs/lp-quick runs/lp3/checkpoints/best");
  verb->callback([options, &exit] { exit = check_paths(*options); });
}

}  // namespace normlab
