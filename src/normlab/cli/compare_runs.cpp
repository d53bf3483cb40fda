// normlab compare RUN RUN...: finished runs beside each other.
#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/cli/compare.h"
#include "normlab/record/run_dir.h"
#include "normlab/study/present/run_report.h"
#include "normlab/study/run/study_folder.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

void require_no_study_options(const CompareOptions& options) {
  const ConfigOptions& config = options.config;
  const bool of_study = !config.files.empty() || !config.sets.empty() || !config.data.empty() ||
                        !config.threads.empty() || !options.budget.empty() || !options.schemes.empty() ||
                        options.jobs > 0 || options.dry_run || options.prepare;
  if (of_study)
    throw UsageError("compare", concat("got ", options.folders.size(), " runs and options of a study. Runs are shown ",
                                       "as they are: with them go --out, --json and --quiet only."));
}

// comparisons/plain-lp, whatever the runs' own folders are.
fs::path default_folder(const std::vector<std::string>& runs) {
  constexpr size_t most_names = 3;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(runs.size(), most_names); ++i)
    names.push_back(fs::weakly_canonical(runs[i]).filename().string());
  if (runs.size() > most_names) names.push_back(concat("and-", runs.size() - most_names, "-more"));
  return fs::path("comparisons") / join(names, "-");
}

void require_free(const fs::path& folder) {
  if (is_study(folder) || fs::exists(folder / "config.toml"))
    throw UsageError("--out", concat("got ", folder.string(), ", which is a ", is_study(folder) ? "study" : "run",
                                     "; expected a folder for the report."));
}

}  // namespace

Exit compare_runs(const CompareOptions& options) {
  require_no_study_options(options);
  const fs::path out = options.out.empty() ? default_folder(options.folders) : fs::path(options.out);
  require_free(out);
  const RunComparison runs = load_runs(options.folders);
  std::vector<std::string> words = {"compare"};
  words.insert(words.end(), options.folders.begin(), options.folders.end());
  const RunReport report = make_run_report(runs, own_command(words));
  write_report(out, report.files);
  const Exit exit = runs.unreadable.empty() ? Exit::done : Exit::data;
  if (options.json) {
    write_output(report.json);
    return exit;
  }
  print_line(plain_text(report.losses));
  if (!report.settings.rows.empty()) print_line(concat("\n", plain_text(report.settings)));
  print_line("");
  print_wrapped(report.sentence);
  if (!report.detail.empty()) print_wrapped(report.detail);
  for (const std::string& notice : report.notices) print_wrapped(concat("note: ", notice));
  print_report_place(out);
  return exit;
}

}  // namespace normlab
