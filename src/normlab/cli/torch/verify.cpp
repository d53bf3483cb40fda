// normlab verify: our numbers against those of other implementations, from files of their weights and results.
#include "normlab/cli/torch/verify.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "normlab/base/text.h"
#include "normlab/cli/torch/verbs.h"
#include "normlab/infer/import.h"
#include "normlab/infer/import_translation.h"
#include "normlab/models/weights.h"
#include "normlab/train/stepper.h"

namespace normlab {
namespace {

using nlohmann::json;
using torch::Tensor;

class Verification {
 public:
  Verification(const std::string& path, const std::string& kernels)
      : file_(path),
        importer_(find_importer(metadata("source"))),
        shape_(read_shape(importer_, metadata("config"), kernels)),
        model_(import_model(importer_, shape_, file_, "weights.")),
        matches_(match_names(importer_, shape_, model_)),
        tokens_(load_tensor(file_.at("inputs.tokens"))),
        logits_(model_.logits(tokens_, Pass{})) {
    const auto* view = file_.find("inputs.targets");
    if (view) {
      targets_ = load_tensor(*view);
    } else {  // position t predicts token t+1
      targets_ = tokens_.slice(1, 1);
      tokens_ = tokens_.slice(1, 0, -1);
    }
  }

  std::vector<Check> run() {
    compare("logits", logits_, "expect.logits", logits_bound);
    const Tensor value = model_.loss(tokens_, targets_, Pass{});
    compare("loss", value, "expect.loss", logits_bound);
    value.backward();
    for (const NameMatch& match : matches_)
      compare("grad " + match.theirs, rows(match, /*gradient=*/true), "expect.grads." + match.theirs, gradient_bound);
    if (file_.find("expect.losses")) ten_steps();
    return checks_;
  }

 private:
  std::string metadata(const std::string& key) const { return reference_metadata(file_, key); }

  Tensor rows(const NameMatch& match, bool gradient) {
    for (auto& [name, tensor] : model_.parameters())
      if (name == match.ours) return (gradient ? tensor.grad() : tensor).narrow(0, match.first_row, match.rows);
    return {};
  }

  void compare(const std::string& name, const Tensor& got, const std::string& key, double bound) {
    checks_.push_back({name, relative_error(got, load_tensor(file_.at(key))), bound});
  }

  void ten_steps() {
    compare("ten losses", losses_of_steps(file_, model_, Batch{tokens_, targets_}, Pass{}), "expect.losses",
            losses_bound);
    for (const NameMatch& match : matches_)
      compare("after " + match.theirs, rows(match, /*gradient=*/false), "expect.after." + match.theirs, after_bound);
  }

  SafetensorsFile file_;
  const Importer& importer_;
  ImportedShape shape_;
  DecoderLm model_;
  std::vector<NameMatch> matches_;
  Tensor tokens_, targets_, logits_;
  std::vector<Check> checks_;
};

std::vector<Check> checks_of(const std::string& path, const std::string& kernels) {
  const SafetensorsFile file(path);
  const std::string source = reference_metadata(file, "source");
  const std::vector<std::string> known = verify_sources();
  if (std::ranges::find(known, source) == known.end())
    throw DataError(path, concat("has the source '", source, "', expected one of ", join(known, ", "), "."));
  if (source == translation_source) return verify_translator(file, kernels);
  return Verification(path, kernels).run();
}

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
      for (const Check& check : checks_of(path, options.kernels)) {
        good = good && check.passed();
        rows.push_back(
            {{"check", check.name}, {"error", check.error}, {"bound", check.bound}, {"passed", check.passed()}});
        if (!options.json)
          print_line(concat(check.passed() ? "  ok    " : "  FAIL  ", significant(check.error, 2), "  ", check.name));
      }
    } catch (const Error& error) {
      good = false;
      message = error.what();
    } catch (const json::exception& error) {
      good = false;
      message = concat("[", path, "] the optimizer's metadata is incomplete (", error.what(), ").");
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

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = got.detach().to(torch::kFloat64).reshape(expected.sizes()), b = expected.to(torch::kFloat64);
  const double scale = b.abs().max().item<double>(), difference = (a - b).abs().max().item<double>();
  return scale > 0.0 ? difference / scale : difference;
}

std::string reference_metadata(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw DataError(file.path().string(), concat("has no metadata '", key, "': it is not a file of reference values."));
  return found->second;
}

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
