// normlab serve: runs and studies of a folder in the browser.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "normlab/base/file.h"
#include "normlab/base/run_program.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/compare.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/serve/http_server.h"
#include "normlab/serve/pages.h"

namespace normlab {
namespace {

struct ServeOptions {
  std::string folder = ".", host = "127.0.0.1";
  int port = 8750;
  bool until_eof = false, json = false;
};

bool input_has_ended() {
  pollfd waiting{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, 0) <= 0) return false;
  char byte;
  return ::read(STDIN_FILENO, &byte, 1) <= 0;
}

// The page of `normlab inspect`, by a process that gives way to trainings.
std::string inspect_in_child(const std::filesystem::path& run, const StopToken& stop) {
  const ScratchFolder folder;
  const std::filesystem::path page = folder.path() / "inspect.html";
  run_program("inspect", {torch_program().string(), "inspect", run.string(), "--out", page.string(), "--threads", "1"},
              {.log = folder.path() / "log", .nice = 19, .stop = stop});
  return read_file(page);
}

Exit serve(const ServeOptions& options) {
  // Whoever reaches another address may read, but not make this machine work.
  Pages pages(options.folder, is_loopback(options.host) ? inspect_in_child : nullptr);
  const HttpServer server({.host = options.host, .port = options.port},
                          {.get = [&](const std::string& path) { return pages.get(path); },
                           .post = [&](const std::string& path) { return pages.post(path); }});
  if (!is_loopback(options.host))
    log_line(concat(warning_label(STDERR_FILENO), "everyone who can reach ", options.host,
                    " can read the runs and studies of ", options.folder, "; there is no password"));
  if (options.json)
    print_json({{"link", server.link()}, {"port", server.port()}, {"folder", pages.folder().root().string()}});
  else
    print_line(concat(server.link(), "  runs and studies of ", pages.folder().root().string(), "; Ctrl-C stops"));
  while (!stop_requested() && !(options.until_eof && input_has_ended()))
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return Exit::done;
}

}  // namespace

StudyServer::StudyServer(const std::string& study)
    : server_(
          {std::filesystem::read_symlink("/proc/self/exe").string(), "serve", study, "--port", "0", "--until-eof"}) {
  const auto line = server_.read_line();
  if (line) log_line(concat("live: ", line->substr(0, line->find(' ')), "study/"));
}

void StudyServer::show_end() const {
  constexpr auto two_looks = std::chrono::seconds(4);
  for (const auto end = std::chrono::steady_clock::now() + two_looks;
       std::chrono::steady_clock::now() < end && !stop_requested();)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void add_serve(CLI::App& app, Exit& exit) {
  auto* verb = app.add_subcommand("serve", "runs and studies in the browser, while they run");
  auto options = std::make_shared<ServeOptions>();
  verb->add_option("folder", options->folder, "folder with runs and studies; default: this one")->type_name("FOLDER");
  verb->add_option("--port", options->port, "port to listen on, 0 for a free one; default 8750")
      ->check(whole_number(0, 65535))
      ->type_name("N");
  verb->add_option("--host", options->host, "address to listen on; default 127.0.0.1, which only this machine reaches")
      ->type_name("ADDRESS");
  verb->add_flag("--until-eof", options->until_eof, "stop when standard input ends, for a program that starts it");
  verb->add_flag("--json", options->json, "print link, port and folder as JSON");
  verb->footer(
      "Reads only: training is neither slowed nor blocked, and a stopped server loses nothing. The page of a study is "
      "its report so far, that of a run shows losses and diagnostics; both follow new points without reloading. "
      "`normlab compare --serve` starts it with a study.\n"
      "Examples:\n"
      "  normlab serve\n"
      "  normlab serve studies --port 9000");
  verb->callback([options, &exit] { exit = serve(*options); });
}

}  // namespace normlab
