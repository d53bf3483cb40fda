// normlab verify: our numbers against those of other implementations, from files of their weights and results.
#include "normlab/infer/verify.h"

#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/infer/import.h"

namespace normlab {
namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  std::string kernels = "best";
  bool json = false;
};

Exit verify(const VerifyOptions& options) {
  int passed = 0, failed = 0;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const std::string& path : options.files) {
    bool good = true;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    std::string message;
    try {
      for (const Check& check : verify_file(path, options.kernels, stop_requested)) {
        good = good && check.passed();
        rows.push_back(
            {{"check", check.name}, {"error", check.error}, {"bound", check.bound}, {"passed", check.passed()}});
        if (!options.json)
          print_line(concat(check.passed() ? "  ok    " : "  FAIL  ", significant(check.error, 2), "  ", check.name));
      }
    } catch (const Error& error) {
      if (error.code() == Exit::stopped) throw;
      good = false;
      message = error.what();
    } catch (const std::exception& error) {  // the other files are checked all the same
      good = false;
      message = concat("[", path, "] ", split(error.what(), '\n').front());
    }
    good ? ++passed : ++failed;
    all.push_back({{"file", path}, {"passed", good}, {"message", message}, {"checks", rows}});
    if (!options.json) print_line(concat(good ? "passed " : "FAILED ", path, message.empty() ? "" : ": " + message));
  }
  if (options.json)
    print_json({{"passed", passed}, {"failed", failed}, {"files", all}});
  else
    print_line(concat(passed, " passed, ", failed, " failed"));
  return failed == 0 ? Exit::done : Exit::data;
}

}  // namespace

void add_verify(CLI::App& app, Exit& exit) {
  auto* verb = add_torch_verb(app, "verify");
  auto options = std::make_shared<VerifyOptions>();
  verb->add_option("files", options->files, "safetensors files of weights, inputs and expected results")
      ->required()
      ->type_name("FILE");
  verb->add_option("--kernels", options->kernels, "fused, composite or best (model.kernels)")->type_name("KERNELS");
  verb->add_flag("--json", options->json, "machine-readable output");
  verb->footer(concat("A file names its implementation in its metadata `source`: ", join(verify_sources(), ", "),
                      ".\nExample:\n  normlab verify tests/reference/nanogpt-bias.safetensors"));
  verb->callback([options, &exit] { exit = verify(*options); });
}

}  // namespace normlab
