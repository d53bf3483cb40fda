// What the verbs of the command line share; each file adds one subcommand that sets the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/fields.h"
#include "normlab/cli/usage.h"

namespace normlab {

// One catch turns every error into a message and an exit code.
int run_program(const std::function<int()>& body);
// Parses, and runs the verb, which sets `exit`.
int parse_and_run(CLI::App& app, int argc, char** argv, const Exit& exit);

// The verbs that need no tensors.
void add_compare(CLI::App& app, Exit& exit);
void add_report(CLI::App& app, Exit& exit);
void add_plan(CLI::App& app, Exit& exit);
void add_merge(CLI::App& app, Exit& exit);
void add_fit(CLI::App& app, Exit& exit);
void add_serve(CLI::App& app, Exit& exit);
void add_schemes(CLI::App& app, Exit& exit);
void add_config(CLI::App& app, Exit& exit);
void add_score(CLI::App& app, Exit& exit);
void add_bpe(CLI::App& app, Exit& exit);
void add_check(CLI::App& app, Exit& exit);
void add_completion(CLI::App& app, Exit& exit);
void add_manual(CLI::App& app, Exit& exit);

// What `normlab report` is asked for; `compare` ends with it.
struct ReportOptions {
  std::string study, baseline = {}, target = {};
  bool json = false;
};
Exit report_study(const ReportOptions& options);
void print_report_place(const std::filesystem::path& folder);  // path and file:// link of its page

// Options that several verbs share.
struct ConfigOptions {
  std::vector<std::string> files, sets;
  std::string data, threads, device;

  void add_to(CLI::App& verb);            // with --threads and --device
  void add_files_to(CLI::App& verb);      // without
  std::vector<Setting> settings() const;  // files, then --data, --threads and --device, then --set
};

// UsageError when the settings are those of a study; `verb` trains one model.
void require_one_run(const std::vector<Setting>& settings, const std::string& verb);

std::vector<std::string> command_line();  // of this process
// A command of this program that can be pasted into the shell: as it was called, with quotes where they are needed.
std::string own_command(const std::vector<std::string>& words);
std::string shell_word(const std::string& text);

// Standard output, flushed. Error when it cannot be written; a closed pipe ends the program quietly.
void write_output(std::string_view text);
void print_line(const std::string& line);     // with control characters escaped
void print_wrapped(const std::string& text);  // in lines as wide as the terminal
void print_labelled(const std::string& label, const std::string& text, size_t indent);  // wrapped to the terminal
void print_json(const nlohmann::ordered_json& value);  // numbers that are not finite become null

}  // namespace normlab
