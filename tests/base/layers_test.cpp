// The ladder of layers: a file includes only its own layer and those below it, and torch stays above the torch line.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> may_include = [] {
  std::map<std::string, std::set<std::string>> rules;
  std::set<std::string> below;
  // Layers of one list do not see each other.
  const std::vector<std::vector<std::string>> ladder = {
      {"base"},          {"norm", "ranks"}, {"kernels", "data", "record", "stats"},
      {"config"},        {"report"},        {"study/run"},
      {"study/analyse"}, {"study/present"}, {"serve"},
      {"cli"},           {"ops"},           {"nn", "pytorch"},
      {"models"},        {"probe"},         {"train"},
      {"infer"},         {"study/trial"},   {"cli/torch", "cli/bench"}};
  for (const auto& rung : ladder) {
    for (const std::string& layer : rung) rules[layer] = below;
    below.insert(rung.begin(), rung.end());
  }
  // Only what presents results sees how pages are made; the program's options are no layer's business.
  for (const char* layer : {"ops", "nn", "pytorch", "models", "probe", "train", "infer"})
    for (const char* far : {"report", "study/run", "study/analyse", "study/present", "serve", "cli"})
      rules[layer].erase(far);
  for (auto& [layer, below_it] : rules) below_it.erase("pytorch");
  for (const char* far : {"study/analyse", "study/present", "serve", "cli"}) rules["study/trial"].erase(far);
  rules["cli/bench"].insert("cli/torch");
  rules["ranks/mpi"] = {"ranks"};
  rules["c"] = rules["infer"];
  rules["c"].insert("infer");
  return rules;
}();
const std::set<std::string> above_torch_line = {"ops",   "pytorch",     "nn",        "models",    "train", "infer",
                                                "probe", "study/trial", "cli/torch", "cli/bench", "c"};

TEST(Layers, IncludeOnlyDownwards) {
  const std::regex include("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  const fs::path sources = fs::path(NORMLAB_SOURCE_DIR) / "src/normlab";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(sources)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    ++files;
    const std::string layer = entry.path().parent_path().lexically_relative(sources).string();
    ASSERT_TRUE(may_include.contains(layer)) << entry.path() << " stands in no known layer";
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string target = match[1];
      const bool own = target.starts_with("normlab/");
      const std::string folder =
          own ? fs::path(target.substr(8)).parent_path().string() : target.substr(0, target.find('/'));
      if (own && folder != layer) {
        EXPECT_TRUE(may_include.at(layer).contains(folder)) << entry.path() << " includes " << target;
      }
      if (folder == "torch" || folder == "ATen" || folder == "c10") {
        EXPECT_TRUE(above_torch_line.contains(layer)) << entry.path() << " includes " << target;
      }
    }
  }
  EXPECT_GT(files, 50);
}

// Signal handlers, the allocator and the file of the process belong to the program that uses the library.
TEST(Layers, OnlyTheProgramRulesTheProcess) {
  const std::regex rules_it(R"(/proc/self/exe|mallopt|sigaction|\bsignal\(|signals\.h)");
  const fs::path sources = fs::path(NORMLAB_SOURCE_DIR) / "src/normlab";
  bool program_does = false;
  for (const auto& entry : fs::recursive_directory_iterator(sources)) {
    if (!entry.is_regular_file()) continue;
    const bool program = entry.path().lexically_relative(sources).begin()->string() == "cli";
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      if (!std::regex_search(line, rules_it)) continue;
      program_does |= program;
      EXPECT_TRUE(program) << entry.path() << ": " << line;
    }
  }
  EXPECT_TRUE(program_does);
}

}  // namespace
