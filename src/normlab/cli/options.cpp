// Options and output that the verbs share.
#include <algorithm>

#include "normlab/base/file.h"
#include "normlab/base/prose.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/cli/verbs.h"

namespace normlab {
namespace {

const CLI::Validator not_empty([](std::string& text) { return text.empty() ? "is empty" : ""; }, "", "not_empty");

}  // namespace

void ConfigOptions::add_to(CLI::App& verb) {
  add_files_to(verb);
  verb.add_option("--threads", threads, "threads, 0 for all cores, or one for a small model (train.threads)")
      ->type_name("N");
  verb.add_option("--device", device, "auto, cpu, cuda or cuda:N (train.device)")->type_name("DEVICE");
}

void ConfigOptions::add_files_to(CLI::App& verb) {
  verb.add_option("-c,--config", files, "TOML file; may be repeated, later files override earlier ones")
      ->allow_extra_args(false)  // what follows it may be the run
      ->type_name("FILE");
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
  if (!device.empty())
    all.push_back({.key = "train.device", .values = {device}, .where = "--device", .is_list = false});
  for (const std::string& set : sets) {
    if (set.find('=') == std::string::npos)
      throw UsageError("--set", concat("got '", set, "', expected key=value, such as model.d_model=128; a folder is ",
                                       "named before --set."));
    all.push_back(parse_setting(set));
  }
  return all;
}

void require_one_run(const std::vector<Setting>& settings, const std::string& verb) {
  for (const Setting& setting : settings) {
    const bool of_study =
        setting.key.starts_with("study.") || setting.key.starts_with("variant.") || setting.key.starts_with("ladder.");
    if (!of_study && !setting.is_list) continue;
    throw UsageError(setting.where,
                     concat(of_study ? concat("this is a study, with ", setting.key)
                                     : concat(setting.key, " has a list of values, and lists are for studies"),
                            ". `normlab ", verb, "` trains one model: use `normlab compare`."));
  }
}

std::vector<std::string> command_line() {
  std::vector<std::string> words = split(read_file("/proc/self/cmdline"), '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view safe = "@%+=:,./-_~";
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           safe.find(c) != std::string_view::npos;
  });
  return plain ? text : concat("'", replace_all(text, "'", "'\\''"), "'");
}

std::string own_command(const std::vector<std::string>& words) {
  std::string out = shell_word(command_line().front());
  for (const std::string& word : words) out += concat(" ", shell_word(word));
  return out;
}

void print_wrapped(const std::string& text) {
  const size_t columns = text_width();
  for (const std::string& line : wrap(text, columns)) print_line(line);
}

void print_labelled(const std::string& label, const std::string& text, size_t indent) {
  const size_t columns = text_width();
  std::string out = label + (columns_of(label) < indent ? std::string(indent - columns_of(label), ' ') : "  ");
  const std::vector<std::string> lines = wrap(text, columns - indent);
  for (size_t i = 0; i < lines.size(); ++i) out += concat(i > 0 ? "\n" + std::string(indent, ' ') : "", lines[i]);
  print_line(out);
}

void print_line(const std::string& line) { write_output(visible(line) + "\n"); }

void print_json(const nlohmann::ordered_json& value) {
  write_output(value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace normlab
