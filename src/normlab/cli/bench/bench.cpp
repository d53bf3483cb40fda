// normlab bench: the verb, and how rows are measured and shown.
#include "normlab/cli/bench/bench.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <thread>

#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/kernels/isa.h"
#include "normlab/kernels/peak.h"
#include "normlab/record/manifest.h"
#include "normlab/report/table.h"
#include "normlab/stats/summary.h"

namespace normlab {
namespace {

constexpr int warm_ups = 2;
constexpr double seconds_wanted = 15.0;  // of measuring a config, when --repeat does not say
constexpr int fewest_rounds = 5, most_rounds = 50;

// The threads of another process or pool spin for a few milliseconds after their work; this outlasts them.
void let_others_settle() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

// A column of the table; it is left out when no row has a value.
struct BenchColumn {
  std::string title;
  bool is_text;
  std::function<std::string(const BenchRow&)> value;
};

// Slope of ln y over ln x by least squares.
template <class Value>
double log_slope(const std::vector<double>& x, std::span<const BenchRow> rows, const Value& value) {
  double sx = 0.0, sy = 0.0, sxx = 0.0, sxy = 0.0;
  const auto n = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = std::log(x[i]), b = std::log(value(rows[i]));
    sx += a, sy += b, sxx += a * a, sxy += a * b;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

std::string as_power(const std::optional<double>& exponent) { return exponent ? "^" + fixed(*exponent, 2) : ""; }

std::string in_bytes(const std::optional<int64_t>& bytes) { return bytes ? si(static_cast<double>(*bytes)) + "B" : ""; }

const std::vector<BenchColumn>& columns() {
  static const std::vector<BenchColumn> all = {
      {"config", true, [](const BenchRow& r) { return r.config; }},
      {"scheme", true, [](const BenchRow& r) { return r.scheme; }},
      {"path", true, [](const BenchRow& r) { return r.path; }},
      {"min ms", false, [](const BenchRow& r) { return significant(1e3 * r.fastest(), 4); }},
      {"median ms", false, [](const BenchRow& r) { return significant(1e3 * median(r.seconds), 4); }},
      {"FLOP/s", false, [](const BenchRow& r) { return si(r.flops / r.fastest()); }},
      {"of peak", false, [](const BenchRow& r) { return fixed(100.0 * r.share_of_peak(), 1) + " %"; }},
      {"of read", false,
       [](const BenchRow& r) {
         return r.read_peak > 0.0 ? fixed(100.0 * r.bytes_per_second() / r.read_peak, 1) + " %" : "";
       }},
      {"ratio", false, [](const BenchRow& r) { return fixed(r.ratio, 3); }},
      {"tokens/s", false,
       [](const BenchRow& r) { return r.tokens > 0 ? si(static_cast<double>(r.tokens) / r.fastest()) : ""; }},
      {"peak memory", false, [](const BenchRow& r) { return in_bytes(r.peak_bytes); }},
      {"extra memory", false, [](const BenchRow& r) { return in_bytes(r.extra_bytes); }},
      {"time", false, [](const BenchRow& r) { return r.growth ? as_power(r.growth->time) : ""; }},
      {"FLOP", false, [](const BenchRow& r) { return r.growth ? as_power(r.growth->flops) : ""; }},
      {"memory", false, [](const BenchRow& r) { return r.growth ? as_power(r.growth->memory) : ""; }},
  };
  return all;
}

}  // namespace

double BenchRow::fastest() const { return *std::min_element(seconds.begin(), seconds.end()); }

double timed(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Bench::Bench(std::string name, const BenchOptions& options) : name_(std::move(name)), options_(options) {}

int Bench::rounds_for(double round_seconds) const {
  if (options_.repeat > 0) return options_.repeat;
  const double wanted = std::ceil(seconds_wanted / std::max(round_seconds, 1e-9));
  return static_cast<int>(std::clamp(wanted, double{fewest_rounds}, double{most_rounds}));
}

void Bench::measure(std::vector<Contender> contenders) {
  ProgressLine progress;
  const auto run = [&](Contender& one, const std::string& stage) {
    progress.update(concat(one.row.config, "  ", stage, "  ", one.row.scheme, " ", one.row.path));
    let_others_settle();
    return one.run();
  };
  double round_seconds = 0.0;
  for (Contender& one : contenders)
    for (int i = 0; i < warm_ups && !stop_requested(); ++i) {
      const double seconds = run(one, "warm-up");
      if (i + 1 == warm_ups) round_seconds += seconds;
    }
  const int rounds = rounds_for(round_seconds);
  const size_t n = contenders.size();
  const double peak_seconds = std::clamp(round_seconds / static_cast<double>(std::max<size_t>(1, n)), 0.02, 1.0);
  const auto weight_bytes = static_cast<size_t>(contenders.empty() ? 0 : contenders.front().row.weight_bytes);
  double peak = 0.0, read_peak = 0.0;
  for (size_t turn = 0; turn < n * static_cast<size_t>(rounds) && !stop_requested(); ++turn) {
    const size_t round = turn / n;
    if (turn % n == 0) {
      let_others_settle();
      peak = std::max(peak, measured_peak(at::get_num_threads(), peak_seconds));
      if (weight_bytes > 0)
        read_peak = std::max(read_peak, measured_read_bandwidth(at::get_num_threads(), weight_bytes, peak_seconds));
    }
    Contender& one = contenders[(turn + round) % n];
    const double seconds = run(one, concat("round ", round + 1, "/", rounds));
    if (!stop_requested()) one.row.seconds.push_back(seconds);
  }
  const size_t group = rows_.size();
  for (Contender& one : contenders) {
    if (one.row.seconds.empty()) continue;
    if (one.finish && !stop_requested()) one.finish(one.row);
    rows_.push_back(std::move(one.row));
    rows_.back().peak = peak;
    if (rows_.back().weight_bytes > 0) rows_.back().read_peak = read_peak;
    rows_.back().ratio = rows_.back().fastest() / rows_[group].fastest();
  }
}

void Bench::fit_growth(const std::vector<double>& sizes) {
  if (sizes.size() < 2 || rows_.size() < sizes.size() || stop_requested()) return;
  const std::span<const BenchRow> rows(rows_.data() + (rows_.size() - sizes.size()), sizes.size());
  Growth growth{.time = log_slope(sizes, rows, [](const BenchRow& row) { return row.fastest(); }),
                .flops = log_slope(sizes, rows, [](const BenchRow& row) { return row.flops; })};
  const auto positive = [](const BenchRow& row) { return row.peak_bytes.value_or(0) > 0; };
  if (std::all_of(rows.begin(), rows.end(), positive))
    growth.memory = log_slope(sizes, rows, [](const BenchRow& row) { return static_cast<double>(*row.peak_bytes); });
  rows_.back().growth = growth;
}

nlohmann::ordered_json Bench::to_json(const BenchRow& row) const {
  const Machine machine = this_machine();
  nlohmann::ordered_json out = {{"bench", name_},
                                {"config", row.config},
                                {"scheme", row.scheme},
                                {"path", row.path},
                                {"threads", at::get_num_threads()},
                                {"repeats", row.seconds.size()},
                                {"min_s", row.fastest()},
                                {"median_s", median(row.seconds)},
                                {"flops", row.flops},
                                {"flops_per_s", row.flops / row.fastest()},
                                {"peak_flops_per_s", row.peak},
                                {"share_of_peak", row.share_of_peak()},
                                {"ratio", row.ratio}};
  if (row.read_peak > 0.0) {
    out["weight_bytes"] = row.weight_bytes;
    out["read_bytes_per_s"] = row.bytes_per_second();
    out["peak_read_bytes_per_s"] = row.read_peak;
    out["share_of_read"] = row.bytes_per_second() / row.read_peak;
  }
  if (row.tokens > 0) out["tokens_per_s"] = static_cast<double>(row.tokens) / row.fastest();
  if (row.peak_bytes) out["peak_bytes"] = *row.peak_bytes;
  if (row.extra_bytes) out["extra_bytes"] = *row.extra_bytes;
  if (row.growth) {
    out["growth"] = {{"time", row.growth->time}, {"flops", row.growth->flops}};
    if (row.growth->memory) out["growth"]["memory"] = *row.growth->memory;
  }
  out["machine"] = {{"cpu", machine.cpu}, {"isa", isa_name()}, {"cores", machine.cores}};
  out["date"] = utc_time(std::chrono::system_clock::now());
  return out;
}

void Bench::print_table() const {
  Table table{"", {}, std::vector<std::vector<Cell>>(rows_.size())};
  table.columns.push_back({"", "", Align::left});
  for (std::vector<Cell>& row : table.rows) row.push_back(text_cell(""));
  for (const BenchColumn& column : columns()) {
    std::vector<std::string> cells = {column.title};
    for (const BenchRow& row : rows_) cells.push_back(column.value(row));
    if (std::all_of(cells.begin() + 1, cells.end(), [](const std::string& cell) { return cell.empty(); })) continue;
    if (!column.is_text) {
      table.columns.push_back({column.title});
      for (size_t i = 0; i < rows_.size(); ++i) table.rows[i].push_back(text_cell(cells[i + 1]));
      continue;
    }
    // What says which row it is makes one column, the first: it stands in every block of a table that is too wide.
    size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, cell.size());
    const auto append = [&](std::string& text, const std::string& cell) {
      text += concat(text.empty() ? "" : "  ", cell, std::string(width - cell.size(), ' '));
    };
    append(table.columns.front().title, cells.front());
    for (size_t i = 0; i < rows_.size(); ++i) append(table.rows[i].front().text, cells[i + 1]);
  }
  print_line(plain_text(table));
}

Exit Bench::report(const std::string& next) {
  if (options_.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const BenchRow& row : rows_) all.push_back(to_json(row));
    print_json(all);
  } else {
    if (!rows_.empty()) print_table();
    const int threads = at::get_num_threads();
    double peak = 0.0, read_peak = 0.0;
    for (const BenchRow& row : rows_) peak = std::max(peak, row.peak), read_peak = std::max(read_peak, row.read_peak);
    const std::string read = concat("of read: weights read per second over ", si(read_peak),
                                    "B/s or less, what a buffer of their size was measured to be read at. ");
    print_line("");
    print_wrapped(concat(this_machine().cpu, ", ", threads, threads == 1 ? " thread, " : " threads, ", isa_name(),
                         "; peak ", si(peak), "FLOP/s measured. ", read_peak > 0.0 ? read : "",
                         "ratio: fastest time over that of the config's first row."));
  }
  if (stop_requested()) {
    log_line(concat("stopped; ", rows_.size(), " rows were measured"));
    return Exit::stopped;
  }
  log_line(concat("next: ", own_command({}), " ", next));
  return Exit::done;
}

void add_bench(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "bench");
  verb->require_subcommand(1);
  add_bench_step(*verb, exit);
  add_bench_attention(*verb, exit);
  add_bench_ops(*verb, exit);
  add_bench_study(*verb, exit);
  add_bench_scaling(*verb, exit);
  add_bench_ranks(*verb, exit);
  add_bench_decode(*verb, exit);
  add_bench_beam(*verb, exit);
  verb->footer(
      "Examples:\n"
      "  normlab bench step --config S --scheme none lp:2.5\n"
      "  normlab bench attention --lengths 256 1024 --json\n"
      "Ctrl-C ends with the rows measured so far and exit code 75.");
}

}  // namespace normlab
