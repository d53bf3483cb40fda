// normlab merge: studies whose trials were run in separate folders become one.
#include "normlab/study/run/merge.h"

#include <memory>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"
#include "normlab/kernels/isa.h"
#include "normlab/record/manifest.h"

namespace normlab {
namespace {

struct MergeOptions {
  std::vector<std::string> folders;
  std::string out;
};

Exit merge(const MergeOptions& options) {
  if (options.folders.size() < 2)
    throw UsageError("merge", concat("got one study, ", options.folders.front(), "; expected two or more to join."));
  const MergedStudy merged = merge_studies({options.folders.begin(), options.folders.end()}, options.out);
  add_session(std::filesystem::path(options.out) / "manifest.json",
              {.command = command_line(), .kernels = std::string(isa_name())});
  for (const std::string& note : merged.notes) log_line(note);
  print_line(concat(merged.ended, " of ", merged.trials, " trials have ended; study in ", options.out));
  print_line(concat("next: ", merged.ended == merged.trials ? own_command({"report", options.out})
                                                            : own_command({"compare", "--out", options.out})));
  return Exit::done;
}

}  // namespace

void add_merge(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("merge", "join studies that were run in separate folders");
  auto options = std::make_shared<MergeOptions>();
  verb->add_option("study", options->folders, "folders of `normlab compare`; they stay as they are")
      ->required()
      ->type_name("DIR");
  verb->add_option("-o,--out", options->out, "folder of the joined study; must not exist")
      ->required()
      ->type_name("DIR");
  verb->footer(
      "The joined study has the folds, seeds, list values and [[variant]]s of all. It is refused when the studies "
      "differ in any other setting, in their text or in the version of normlab. Of a trial that several have, one that "
      "has finished is kept.\n"
      "Examples:\n"
      "  normlab merge studies/folds-0-4 studies/folds-5-9 --out studies/all\n"
      "  normlab report studies/all");
  verb->callback([options, &exit] { exit = merge(*options); });
}

}  // namespace normlab
