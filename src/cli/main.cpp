// normlab: the program. One catch turns every error into a message and an exit code.
#include <malloc.h>
#include <torch/version.h>

#include <cstdio>
#include <exception>

#include "base/signals.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "kernels/isa.h"

namespace {

using namespace normlab;

int fail(const std::string& message, Exit code) {
  const bool colour = use_colour(STDERR_FILENO);
  log_line(str(colour ? "\033[31merror\033[0m " : "error ", message));
  return static_cast<int>(code);
}

// Activations come and go many times a step: kept by the allocator, they need no new pages from the kernel each time.
void keep_freed_memory() {
  constexpr int megabyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * megabyte);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1024 * megabyte);
  mallopt(M_TOP_PAD, 16 * megabyte);
}

int run(int argc, char** argv) {
  CLI::App app{"Train, compare, inspect and ship transformers with normalised attention.", "normlab"};
  app.set_version_flag("--version", str("normlab ", NORMLAB_VERSION, ", libtorch ", TORCH_VERSION));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  normlab train --config recipes/shakespeare-cpu.toml --set norm.scheme=lp norm.p=3 --out runs/lp3\n"
      "  normlab generate runs/lp3 --prompt 'ROMEO:'\n"
      "  normlab schemes lp\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 wrong data or failed check,\n"
      "  4 diverged, 75 stopped by a signal after saving: run again with --resume to go on.");
  Exit exit = Exit::done;
  add_train(app, exit);
  add_compare(app, exit);
  add_trial(app, exit);
  add_report(app, exit);
  add_plan(app, exit);
  add_fit(app, exit);
  add_eval(app, exit);
  add_inspect(app, exit);
  add_theory(app, exit);
  add_generate(app, exit);
  add_translate(app, exit);
  add_schemes(app, exit);
  add_config(app, exit);
  add_verify(app, exit);
  add_import(app, exit);
  add_export(app, exit);
  add_score(app, exit);
  add_bpe(app, exit);
  add_bench(app, exit);
  add_doctor(app, exit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(str("[command line] ", error.what(), ". `normlab --help` and `normlab VERB --help` show how."),
                Exit::usage);
  }
  return static_cast<int>(exit);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  install_signal_handlers();
  try {
    check_isa_setting();
    return run(argc, argv);
  } catch (const Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return fail("[memory] there is not enough. Use a smaller train.batch_size or model.", Exit::failed);
  } catch (const std::exception& error) {
    // libtorch's messages go on with a backtrace that helps no user.
    return fail(str("[internal] ", split(error.what(), '\n').front()), Exit::failed);
  }
}
