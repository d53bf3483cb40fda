// normlab: the verbs that need no tensors, and the door to those that do.
#include <cstdio>

#include "normlab/base/text.h"
#include "normlab/cli/help_text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/cli/verbs.h"

namespace {

using namespace normlab;

// Every verb once, in the groups and the order in which the help lists them.
void add_verbs(CLI::App& app, Exit& exit) {
  const auto group = [&](const char* name, const auto& add) {
    const auto all = [](CLI::App*) { return true; };
    const size_t before = app.get_subcommands(all).size();
    add();
    const auto verbs = app.get_subcommands(all);
    for (size_t i = before; i < verbs.size(); ++i) verbs[i]->group(name);
  };
  const auto door = [&](const char* verb) { app.add_subcommand(verb, description_of(verb)); };
  group("Train and use a model", [&] {
    for (const char* verb : {"train", "generate", "translate", "eval", "inspect", "export", "import"}) door(verb);
  });
  group("Compare models", [&] {
    add_compare(app, exit);
    add_report(app, exit);
    add_serve(app, exit);
    add_plan(app, exit);
    add_fit(app, exit);
    add_merge(app, exit);
    door("trial");
  });
  group("Look something up", [&] {
    add_schemes(app, exit);
    add_config(app, exit);
    door("theory");
  });
  group("Work with text", [&] {
    add_score(app, exit);
    add_bpe(app, exit);
  });
  group("Check and set up", [&] {
    add_check(app, exit);
    for (const char* verb : {"doctor", "verify", "bench"}) door(verb);
    add_completion(app, exit);
    add_manual(app, exit);
  });
}

bool is_verb(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; }).empty();
}

int run(int argc, char** argv) {
  // `normlab help train` is `normlab train --help`.
  char help_option[] = "--help";
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    if (argc > 2) argv[1] = argv[2];
    argv[argc > 2 ? 2 : 1] = help_option;
  }
  if (argc > 1 && is_torch_verb(argv[1])) hand_over(argv);
  CLI::App app{"Train, compare, inspect and ship transformers with normalised attention.", "normlab"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "show this help");
  app.set_version_flag("--version", concat("normlab ", NORMLAB_VERSION, ", libtorch ", NORMLAB_TORCH_VERSION),
                       "print the versions of normlab and libtorch");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  normlab train -c recipes/shakespeare-cpu.toml --set norm.scheme=lp norm.p=3 --out runs/lp3\n"
      "  normlab generate runs/lp3 --prompt 'ROMEO:'\n"
      "  normlab compare -c recipes/lp-shakespeare-quick.toml --out studies/quick\n"
      "`normlab VERB --help` explains a verb, `normlab config explain KEY` a key.\n"
      "Exit codes: 0 done, 1 failed, 2 invalid usage or configuration, also a call without a verb, 3 invalid data or "
      "failed check, 4 diverged, 75 stopped by a signal after saving: run again with --resume.");
  Exit exit = Exit::done;
  add_verbs(app, exit);
  if (argc == 1) {
    std::fputs(app.help().c_str(), stderr);
    return static_cast<int>(Exit::usage);
  }
  if (argv[1][0] != '-' && !is_verb(app, argv[1])) throw UsageError("command line", unknown_verb(argv[1], app));
  return parse_and_run(app, argc, argv, exit);
}

}  // namespace

int main(int argc, char** argv) {
  hold_signals();  // until it is clear which program the verb is of
  return run_program([&] { return run(argc, argv); });
}
