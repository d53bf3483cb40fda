// What both programs do around their verbs.
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <sstream>

#include "normlab/base/file.h"
#include "normlab/base/memory.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/verbs.h"

namespace normlab {
namespace {

// Nobody reads standard output any more, so there is nothing left to do and nobody to complain to.
struct OutputClosed {};

[[noreturn]] void output_failed() {
  if (errno == EPIPE) throw OutputClosed();
  throw_errno("standard output", "write");
}

// Also what the system puts off until the file is closed, as over a network.
void finish_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) output_failed();
  const int copy = ::dup(STDOUT_FILENO);
  if (copy >= 0 && ::close(copy) != 0 && errno != EINTR) output_failed();
}

// A name in a damaged file may be megabytes long.
std::string shortened(const std::string& message) {
  constexpr size_t start = 3000, end = 500;
  if (message.size() <= start + end) return message;
  return concat(message.substr(0, start), " [...] ", message.substr(message.size() - end));
}

int fail(const std::string& message, Exit code) {
  log_line(concat(error_label(STDERR_FILENO), shortened(message)));
  return static_cast<int>(code);
}

std::string unexpected(const std::exception& error) {
  try {
    explain_out_of_memory(error, "this command");
  } catch (const Error& explained) {
    return explained.what();
  }
  // libtorch appends a backtrace to its messages, which helps no user.
  return concat("[internal] ", split(error.what(), '\n').front());
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
  admit_signals();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text, text);
      write_output(text.str());
      return code;
    }
    return fail(concat("[command line] ", explain(error, app, {argv, argv + argc})), Exit::usage);
  }
  return static_cast<int>(exit);
}

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) output_failed();
}

int run_program(const std::function<int()>& body) {
  keep_freed_memory();
  install_signal_handlers();
  try {
    const int code = body();
    finish_output();
    return code;
  } catch (const OutputClosed&) {
    return static_cast<int>(Exit::done);
  } catch (const Error& error) {
    return fail(error.what(), error.code());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(concat("[", error.path1().string(), "] ", error.code().message(), "."), Exit::failed);
  } catch (const std::exception& error) {
    return fail(unexpected(error), Exit::failed);
  }
}

}  // namespace normlab
