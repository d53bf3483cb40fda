// The ladder of layers: a file includes only its own layer and those below it, and torch stays above the torch line.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> may_include = [] {
  const std::set<std::string> base = {"base"};
  std::map<std::string, std::set<std::string>> rules = {{"base", {}},   {"norm", base},   {"kernels", base},
                                                        {"data", base}, {"record", base}, {"stats", base}};
  const std::set<std::string> core = {"base", "norm", "kernels", "data", "record", "stats"};
  rules["report"] = core;
  std::set<std::string> below = core;
  for (const char* layer : {"ops", "nn", "models", "probe"}) {
    rules[layer] = below;
    below.insert(layer);
  }
  for (const char* layer : {"train", "infer"}) rules[layer] = below;
  below.insert({"train", "infer", "report"});
  rules["study"] = below;
  below.insert("study");
  rules["cli"] = below;
  return rules;
}();
const std::set<std::string> above_torch_line = {"ops", "nn", "models", "train", "infer", "probe", "study", "cli"};

TEST(Layers, IncludeOnlyDownwards) {
  const std::regex include("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(NORMLAB_SOURCE_DIR) / "src")) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    ++files;
    const std::string layer = entry.path().parent_path().filename();
    ASSERT_TRUE(may_include.contains(layer)) << entry.path() << " stands in no known layer";
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string target = match[1], folder = target.substr(0, target.find('/'));
      if (may_include.contains(folder) && folder != layer) {
        EXPECT_TRUE(may_include.at(layer).contains(folder)) << entry.path() << " includes " << target;
      }
      if (folder == "torch" || folder == "ATen" || folder == "c10") {
        EXPECT_TRUE(above_torch_line.contains(layer)) << entry.path() << " includes " << target;
      }
    }
  }
  EXPECT_GT(files, 50);
}

}  // namespace
