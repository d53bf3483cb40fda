// What the verbs of the command line share; each file adds one subcommand that sets the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/fields.h"

namespace normlab {

// One catch turns every error into a message and an exit code.
int run_program(const std::function<int()>& body);
// Parses, and runs the verb, which sets `exit`.
int parse_and_run(CLI::App& app, int argc, char** argv, const Exit& exit);

// The verbs that need no tensors.
void add_compare(CLI::App& app, Exit& exit);
void add_report(CLI::App& app, Exit& exit);
void add_plan(CLI::App& app, Exit& exit);
void add_fit(CLI::App& app, Exit& exit);
void add_schemes(CLI::App& app, Exit& exit);
void add_config(CLI::App& app, Exit& exit);
void add_score(CLI::App& app, Exit& exit);
void add_bpe(CLI::App& app, Exit& exit);
void add_check(CLI::App& app, Exit& exit);

// Options that several verbs share.
struct ConfigOptions {
  std::vector<std::string> files, sets;
  std::string data, threads;

  void add_to(CLI::App& verb);            // with --threads
  void add_files_to(CLI::App& verb);      // without
  std::vector<Setting> settings() const;  // files, then --data and --threads, then --set
};

// What numeric options may not be; CLI11's ranges let it pass.
extern const CLI::Validator not_nan;

std::vector<std::string> command_line();  // of this process

// Standard output, flushed. Error when it cannot be written; a closed pipe ends the program quietly.
void write_output(std::string_view text);
void print_line(const std::string& line);              // with control characters escaped
void print_json(const nlohmann::ordered_json& value);  // numbers that are not finite become null

}  // namespace normlab
