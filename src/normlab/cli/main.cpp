// normlab: the verbs that need no tensors, and the door to those that do.
#include "normlab/base/text.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/cli/verbs.h"

namespace {

using namespace normlab;

int run(int argc, char** argv) {
  if (argc > 1 && is_torch_verb(argv[1])) hand_over(argv);
  CLI::App app{"Train, compare, inspect and ship transformers with normalised attention.", "normlab"};
  app.set_version_flag("--version", concat("normlab ", NORMLAB_VERSION, ", libtorch ", NORMLAB_TORCH_VERSION));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  normlab train --config recipes/shakespeare-cpu.toml --set norm.scheme=lp norm.p=3 --out runs/lp3\n"
      "  normlab generate runs/lp3 --prompt 'ROMEO:'\n"
      "  normlab schemes lp\n"
      "Exit codes: 0 done, 1 failed, 2 invalid usage or configuration, 3 invalid data or failed check,\n"
      "  4 diverged, 75 stopped by a signal after saving: run again with --resume.");
  Exit exit = Exit::done;
  const auto door = [&](const char* verb) { app.add_subcommand(verb, description_of(verb)); };
  door("train");
  add_compare(app, exit);
  door("trial");
  add_report(app, exit);
  add_plan(app, exit);
  add_fit(app, exit);
  door("eval");
  door("inspect");
  door("theory");
  door("generate");
  door("translate");
  add_schemes(app, exit);
  add_config(app, exit);
  door("verify");
  add_check(app, exit);
  door("import");
  door("export");
  add_score(app, exit);
  add_bpe(app, exit);
  door("bench");
  door("doctor");
  return parse_and_run(app, argc, argv, exit);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program([&] { return run(argc, argv); });
}
