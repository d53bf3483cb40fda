// The verbs of a program as data: help, completions and the manual page are made from it.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace normlab {

struct OptionInfo {
  std::vector<std::string> names;  // "-c", "--config"; none of an argument that has only a place
  std::string argument;            // its name as a positional argument, if it is one
  std::string value;               // "FILE"; empty for a flag
  bool many = false, required = false;
  std::string group, help;
};

struct VerbInfo {
  std::string name, description, group, footer;
  std::vector<OptionInfo> options;
  std::vector<VerbInfo> verbs;  // hidden ones left out
};

VerbInfo describe(const CLI::App& app);

nlohmann::json to_json(const VerbInfo& verb);
VerbInfo verb_info_of(const nlohmann::json& json);

}  // namespace normlab
