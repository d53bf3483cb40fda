// normlab-torch: the verbs that run a model. `normlab` starts it.
#include "normlab/cli/help_text.h"
#include "normlab/cli/torch/verbs.h"

namespace {

using namespace normlab;

int run(int argc, char** argv) {
  CLI::App app{"The verbs of normlab that run a model; call them as `normlab VERB`.", "normlab"};
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "show this help");
  app.require_subcommand(1);
  Exit exit = Exit::done;
  add_train(app, exit);
  add_trial(app, exit);
  add_eval(app, exit);
  add_inspect(app, exit);
  add_theory(app, exit);
  add_generate(app, exit);
  add_translate(app, exit);
  add_verify(app, exit);
  add_import(app, exit);
  add_export(app, exit);
  add_bench(app, exit);
  add_doctor(app, exit);
  add_speed(app, exit);
  app.add_subcommand("describe", "for normlab itself")->group("")->callback([&app] {
    print_line(to_json(describe(app)).dump());
  });
  return parse_and_run(app, argc, argv, exit);
}

}  // namespace

int main(int argc, char** argv) {
  return run_program([&] { return run(argc, argv); });
}
