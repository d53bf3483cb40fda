// Options and output that the verbs share.
#include <cmath>

#include "normlab/base/file.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"

namespace normlab {
namespace {

const CLI::Validator not_empty([](std::string& text) { return text.empty() ? "is empty" : ""; }, "", "not_empty");

}  // namespace

const CLI::Validator not_nan(
    [](std::string& text) {
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && std::isnan(value) ? "is not a number" : "";
    },
    "", "not_nan");

void ConfigOptions::add_to(CLI::App& verb) {
  add_files_to(verb);
  verb.add_option("--threads", threads, "threads, 0 for all cores (train.threads)")->type_name("N");
}

void ConfigOptions::add_files_to(CLI::App& verb) {
  verb.add_option("-c,--config", files, "TOML file; later files override earlier ones")->type_name("FILE");
  verb.add_option("--set", sets, "one or more key=value, such as norm.p=3 (`normlab config keys`)")
      ->type_name("KEY=VALUE");
  verb.add_option("--data", data, "data set name or UTF-8 text file (data.source)")
      ->check(not_empty)
      ->type_name("NAME|FILE");
}

std::vector<Setting> ConfigOptions::settings() const {
  std::vector<Setting> all;
  for (const std::string& file : files)
    for (Setting& setting : read_toml(file)) all.push_back(std::move(setting));
  if (!data.empty()) all.push_back({.key = "data.source", .values = {data}, .where = "--data", .is_list = false});
  if (!threads.empty())
    all.push_back({.key = "train.threads", .values = {threads}, .where = "--threads", .is_list = false});
  for (const std::string& set : sets) all.push_back(parse_setting(set));
  return all;
}

std::vector<std::string> command_line() {
  std::vector<std::string> words = split(read_file("/proc/self/cmdline"), '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

void print_line(const std::string& line) { write_output(visible(line) + "\n"); }

void print_json(const nlohmann::ordered_json& value) {
  write_output(value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace normlab
