#include "normlab/infer/verify.h"

#include <gmock/gmock.h>

#include "normlab/base/error.h"
#include "normlab/models/weights.h"
#include "sandbox.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

const fs::path references = fs::path(NORMLAB_SOURCE_DIR) / "tests/reference";

struct Reference {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;

  explicit Reference(const std::string& name) {
    const SafetensorsFile file(references / name);
    metadata = file.metadata();
    for (const TensorView& view : file.tensors()) tensors.emplace_back(view.name, load_tensor(view));
  }
  torch::Tensor at(const std::string& name) const {
    for (const auto& [own, tensor] : tensors)
      if (own == name) return tensor;
    throw std::out_of_range(name);
  }
};

std::vector<std::string> failures(const std::vector<Check>& checks) {
  std::vector<std::string> names;
  for (const Check& check : checks)
    if (!check.passed()) names.push_back(check.name);
  return names;
}

TEST(Verify, ALanguageModelAndATranslatorPass) {
  for (const char* name : {"nanogpt-bias.safetensors", "qknorm-mt.safetensors"})
    for (const char* kernels : {"fused", "composite"}) {
      SCOPED_TRACE(name);
      const std::vector<Check> checks = verify_file(references / name, kernels);
      EXPECT_GT(checks.size(), 30U);
      EXPECT_THAT(failures(checks), testing::IsEmpty());
    }
}

TEST(Verify, NamesWhatDiffers) {
  const TemporaryFolder folder;
  Reference reference("nanogpt-bias.safetensors");
  reference.at("expect.loss").mul_(1.001);
  reference.at("expect.losses").fill_(std::nan(""));
  save_tensors(folder / "changed.safetensors", reference.tensors, reference.metadata);
  EXPECT_THAT(failures(verify_file(folder / "changed.safetensors", "best")),
              testing::ElementsAre("loss", "ten losses"));
}

TEST(Verify, RefusesFilesThatAreNoReference) {
  const TemporaryFolder folder;
  Reference reference("nanogpt-bias.safetensors");
  const fs::path path = folder / "file.safetensors";
  const auto expect_refusal = [&](const std::string& message) {
    save_tensors(path, reference.tensors, reference.metadata);
    EXPECT_THAT([&] { verify_file(path, "best"); }, ThrowsMessage<DataError>(HasSubstr(message)));
  };
  reference.metadata["optimizer"] = "{}";
  expect_refusal("the optimizer's metadata is incomplete");
  reference.metadata["source"] = "elsewhere";
  expect_refusal("has the source 'elsewhere', expected one of");
  reference.metadata.erase("source");
  expect_refusal("has no metadata 'source'");
}

TEST(Verify, StopsInASearch) {
  try {
    verify_file(references / "qknorm-mt.safetensors", "best", [] { return true; });
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::stopped);
  }
}

}  // namespace
}  // namespace normlab
