#include "normlab/infer/verify.h"

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/memory.h"
#include "normlab/base/text.h"
#include "normlab/infer/import.h"
#include "normlab/infer/import_translation.h"
#include "normlab/infer/verify_checks.h"
#include "normlab/models/weights.h"

namespace normlab {
namespace {

using torch::Tensor;

class Verification {
 public:
  Verification(const SafetensorsFile& file, const std::string& kernels)
      : file_(file),
        importer_(find_importer(metadata("source"))),
        shape_(read_shape(importer_, metadata("config"), kernels)),
        model_(import_model(importer_, shape_, file_, "weights.")),
        matches_(match_names(importer_, shape_, model_)),
        tokens_(load_ids(file_, "inputs.tokens", shape_.vocab_size)),
        logits_(model_.logits(tokens_, Pass{})) {
    if (file_.find("inputs.targets")) {
      targets_ = load_ids(file_, "inputs.targets", shape_.vocab_size);
      if (targets_.sizes() != tokens_.sizes())
        throw DataError(file_.path().string(), "inputs.tokens and inputs.targets differ in shape.");
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
    checks_.push_back(compare_tensors(file_, name, got, load_tensor(file_.at(key)), bound));
  }

  void ten_steps() {
    compare("ten losses", losses_of_steps(file_, model_, Batch{tokens_, targets_}, Pass{}), "expect.losses",
            losses_bound);
    for (const NameMatch& match : matches_) {
      const Tensor after = rows(match, /*gradient=*/false);
      compare("after " + match.theirs, match.plus_one ? after - 1.0 : after, "expect.after." + match.theirs,
              after_bound);
    }
  }

  const SafetensorsFile& file_;
  const Importer& importer_;
  ImportedShape shape_;
  DecoderLm model_;
  std::vector<NameMatch> matches_;
  Tensor tokens_, targets_, logits_;
  std::vector<Check> checks_;
};

}  // namespace

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor a = got.detach().to(torch::kFloat64).reshape(expected.sizes()), b = expected.to(torch::kFloat64);
  const double scale = b.abs().max().item<double>(), difference = (a - b).abs().max().item<double>();
  return scale > 0.0 ? difference / scale : difference;
}

Check compare_tensors(const SafetensorsFile& file, const std::string& name, const Tensor& got, const Tensor& expected,
                      double bound) {
  if (got.numel() != expected.numel() || got.numel() == 0)
    throw DataError(file.path().string(), concat("expects ", c10::str(expected.sizes()), " values of '", name,
                                                 "'; ours are ", c10::str(got.sizes()), "."));
  return {name, relative_error(got, expected), bound};
}

Tensor load_ids(const SafetensorsFile& file, const std::string& key, int64_t n) {
  const Tensor ids = load_tensor(file.at(key));
  if (ids.is_floating_point() || ids.dim() != 2 || ids.numel() == 0)
    throw DataError(file.path().string(), concat("'", key, "' is ", c10::str(ids.scalar_type(), ids.sizes()),
                                                 ", expected a matrix of whole numbers."));
  const Tensor whole = ids.to(torch::kInt64);
  if (whole.min().item<int64_t>() < 0 || whole.max().item<int64_t>() >= n)
    throw DataError(file.path().string(), concat("'", key, "' has numbers outside of 0 to ", n - 1, "."));
  return whole;
}

std::string reference_metadata(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw DataError(file.path().string(), concat("has no metadata '", key, "': it is not a file of reference values."));
  return found->second;
}

std::vector<Check> verify_file(const std::filesystem::path& path, const std::string& kernels, const StopToken& stop) {
  const SafetensorsFile file(path);
  const std::string source = reference_metadata(file, "source");
  const std::vector<std::string> known = verify_sources();
  if (std::ranges::find(known, source) == known.end())
    throw DataError(path.string(), concat("has the source '", source, "', expected one of ", join(known, ", "), "."));
  try {
    return source == translation_source ? verify_translator(file, kernels, stop) : Verification(file, kernels).run();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(path.string(), concat("the optimizer's metadata is incomplete (", error.what(), ")."));
  } catch (const c10::Error& error) {  // what was not foreseen above is the file's fault all the same
    explain_out_of_memory(error, path.string());
    throw DataError(path.string(), concat("cannot be computed with: ", split(error.what(), '\n').front()));
  }
}

}  // namespace normlab
