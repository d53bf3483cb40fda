// The verbs of the command line; each file adds one subcommand that sets the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fields.h"

namespace normlab {

struct Progress;

void add_train(CLI::App& app, Exit& exit);
void add_compare(CLI::App& app, Exit& exit);
void add_trial(CLI::App& app, Exit& exit);
void add_report(CLI::App& app, Exit& exit);
void add_plan(CLI::App& app, Exit& exit);
void add_fit(CLI::App& app, Exit& exit);
void add_eval(CLI::App& app, Exit& exit);
void add_inspect(CLI::App& app, Exit& exit);
void add_theory(CLI::App& app, Exit& exit);
void add_generate(CLI::App& app, Exit& exit);
void add_translate(CLI::App& app, Exit& exit);
void add_schemes(CLI::App& app, Exit& exit);
void add_config(CLI::App& app, Exit& exit);
void add_verify(CLI::App& app, Exit& exit);
void add_import(CLI::App& app, Exit& exit);
void add_export(CLI::App& app, Exit& exit);
void add_score(CLI::App& app, Exit& exit);
void add_bpe(CLI::App& app, Exit& exit);
void add_bench(CLI::App& app, Exit& exit);
void add_doctor(CLI::App& app, Exit& exit);

// Options that several verbs share.
struct ConfigOptions {
  std::vector<std::string> files, sets;
  std::string data, threads;

  void add_to(CLI::App& verb);            // with --threads
  void add_files_to(CLI::App& verb);      // without
  std::vector<Setting> settings() const;  // files, then --data and --threads, then --set
};

// 0 means all cores. One OpenMP pool serves libtorch, MKL and our kernels.
void use_threads(int threads);

std::vector<std::string> command_line();  // of this process

std::string progress_text(const Progress& progress);  // of a run, one line

void print_line(const std::string& line);              // standard output
void print_json(const nlohmann::ordered_json& value);  // standard output; numbers that are not finite become null

}  // namespace normlab
