// What both programs do around their verbs.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "normlab/base/signals.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"
#include "normlab/kernels/isa.h"

namespace normlab {
namespace {

int fail(const std::string& message, Exit code) {
  log_line(concat(error_label(STDERR_FILENO), message));
  return static_cast<int>(code);
}

// Activations come and go many times per step: kept by the allocator, they need no new pages from the kernel each time.
void keep_freed_memory() {
  constexpr int megabyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * megabyte);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1024 * megabyte);
  mallopt(M_TOP_PAD, 16 * megabyte);
}

}  // namespace

int parse_and_run(CLI::App& app, int argc, char** argv, const Exit& exit) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return fail(concat("[command line] ", explain(error, app, {argv, argv + argc})), Exit::usage);
  }
  return static_cast<int>(exit);
}

int run_program(const std::function<int()>& body) {
  keep_freed_memory();
  install_signal_handlers();
  try {
    check_isa_setting();
    return body();
  } catch (const Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return fail("[memory] out of memory. Use a smaller train.batch_size or model.", Exit::failed);
  } catch (const std::exception& error) {
    // libtorch appends a backtrace to its messages, which helps no user.
    return fail(concat("[internal] ", split(error.what(), '\n').front()), Exit::failed);
  }
}

}  // namespace normlab
