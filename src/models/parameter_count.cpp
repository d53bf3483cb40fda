#include "models/parameter_count.h"

#include <algorithm>
#include <array>

#include "models/decoder_lm.h"

namespace normlab {
namespace {

constexpr std::array<std::string_view, 4> around_the_blocks = {"embedding.weight", "positions.weight", "head.weight",
                                                               "s_z"};

}  // namespace

ParameterCount count_parameters(const ModelConfig& model, const NormScheme& scheme, int vocab_size) {
  const auto nowhere = torch::TensorOptions().device(torch::kMeta).dtype(torch::kFloat32);
  ParameterCount count;
  for (const auto& [name, tensor] : DecoderLm(model, scheme, vocab_size, /*seed=*/0, nowhere).parameters()) {
    count.total += tensor.numel();
    if (std::find(around_the_blocks.begin(), around_the_blocks.end(), name) == around_the_blocks.end())
      count.body += tensor.numel();
  }
  return count;
}

}  // namespace normlab
