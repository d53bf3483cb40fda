// normlab bench: what its subcommands share. Each makes contenders; a Bench measures them side by side and reports.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "normlab/cli/torch/verbs.h"
#include "normlab/config/config.h"

namespace normlab {

struct BenchOptions {
  std::vector<std::string> configs, schemes, paths;
  int threads = 0, repeat = 0;
  bool json = false;

  void add_to(CLI::App& verb, const std::vector<std::string>& known_paths);
  void add_measuring_to(CLI::App& verb, const std::vector<std::string>& known_paths);  // all but --scheme
  void add_configs_to(CLI::App& verb);
};

// Exponents of what grows with a size, fitted to the logarithms of its rows.
struct Growth {
  double time = 0.0, flops = 0.0;
  std::optional<double> memory = {};
};

// One row of the output: what was measured, and how long each repetition took.
struct BenchRow {
  std::string config, scheme, path;
  double flops = 0.0;                          // floating-point operations of one repetition
  int64_t tokens = 0;                          // made by one repetition; 0: makes none
  int64_t weight_bytes = 0, weight_reads = 0;  // what a repetition reads of weights, and how often; 0: not counted
  std::optional<int64_t> peak_bytes = {};      // of a process that does nothing else
  std::optional<int64_t> extra_bytes = {};     // beyond inputs, outputs and gradients
  std::vector<double> seconds = {};
  std::optional<Growth> growth = {};  // of the rows up to this one
  double ratio = 1.0;                 // fastest repetition over that of the first row of the config
  double peak = 0.0;                  // the machine's, measured between the repetitions
  double read_peak = 0.0;             // bytes/s, likewise, of a buffer of the size of the weights

  double fastest() const;
  double share_of_peak() const { return flops / fastest() / peak; }
  double bytes_per_second() const { return static_cast<double>(weight_bytes * weight_reads) / fastest(); }
};

struct Contender {
  BenchRow row;
  std::function<double()> run;  // one repetition, its seconds; after a request to stop the value means nothing
  std::function<void(BenchRow&)> finish = {};  // after the last repetition, for what is not a time
};

// Rows, and beside them the machine's peak: measured once a round, for as long as a repetition takes, because a shared
// or warm processor keeps up over seconds less than in a burst. The best round counts, as for the rows.
class Bench {
 public:
  Bench(std::string name, const BenchOptions& options);

  // Warms up, then repeats all contenders in rounds, each round in another order: on a shared machine only what runs
  // side by side can be compared.
  void measure(std::vector<Contender> contenders);
  // Gives the last row the growth of the rows just measured, whose sizes these are.
  void fit_growth(const std::vector<double>& sizes);
  // Prints the rows; `next` is the next sensible command.
  Exit report(const std::string& next);

 private:
  int rounds_for(double round_seconds) const;
  nlohmann::ordered_json to_json(const BenchRow& row) const;
  void print_table() const;

  std::string name_;
  BenchOptions options_;
  std::vector<BenchRow> rows_;
};

double timed(const std::function<void()>& work);  // its seconds

constexpr int bench_vocab_size = 65;  // Tiny Shakespeare's characters
std::vector<int64_t> random_tokens(int64_t count, uint64_t stream);

// The model of a row. `config` is L, S, a recipe file or TOML text with a line break; `scheme` is a name of the
// catalogue, with its p after a colon, and replaces the recipe's [norm] unless empty; `path` is fused or composite.
Config bench_config(const std::string& config, const std::string& scheme, const std::string& path);
// Bytes that steps of this model need at most, in a process that does nothing else.
std::optional<int64_t> memory_of_steps_elsewhere(const std::string& config, const std::string& scheme,
                                                 const std::string& path);
std::string scheme_label(const std::string& scheme, const NormScheme& norm);

void add_bench_step(CLI::App& verb, Exit& exit);
void add_bench_attention(CLI::App& verb, Exit& exit);
void add_bench_ops(CLI::App& verb, Exit& exit);
void add_bench_study(CLI::App& verb, Exit& exit);
void add_bench_scaling(CLI::App& verb, Exit& exit);
void add_bench_ranks(CLI::App& verb, Exit& exit);
void add_bench_decode(CLI::App& verb, Exit& exit);
void add_bench_beam(CLI::App& verb, Exit& exit);

}  // namespace normlab
