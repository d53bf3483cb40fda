#include "models/parameter_count.h"

#include <gtest/gtest.h>

#include "models/decoder_lm.h"

namespace normlab {
namespace {

TEST(ParameterCount, IsThatOfTheRealModelForEveryScheme) {
  for (const NormScheme& scheme : catalogue()) {
    ModelConfig config{.n_layers = 2, .n_heads = 2, .d_model = 16, .seq_len = 8};
    config.tied_head = false;
    config.activation = Activation::swiglu;
    if (scheme.residual != Residual::add) config.positions = Positions::rope;
    resolve(config, scheme);
    const int64_t positions = config.positions == Positions::learned ? 8 * 16 : 0;
    const auto total = [&](int vocab_size) {
      int64_t sum = 0;
      for (const auto& [name, tensor] : DecoderLm(config, scheme, vocab_size, /*seed=*/1).parameters())
        sum += tensor.numel();
      return sum;
    };
    const ParameterCount count = count_parameters(config, scheme, 11);
    EXPECT_EQ(count.total, total(11)) << scheme.name;
    // What is around the blocks: the positions, and of each token an embedding, a row of the head and perhaps a scale.
    const int64_t of_token = total(12) - total(11);
    EXPECT_EQ(count.body, total(11) - 11 * of_token - positions) << scheme.name;
  }
}

TEST(ParameterCount, ABillionParametersTakeNoMemory) {
  ModelConfig config{.n_layers = 25, .n_heads = 25, .d_model = 1600, .seq_len = 2048};
  resolve(config, find_scheme("none"));
  const ParameterCount count = count_parameters(config, find_scheme("none"), 50257);
  EXPECT_EQ(count.body, 12LL * 25 * 1600 * 1600 + 51 * 1600);
  EXPECT_EQ(count.total, count.body + (50257LL + 2048) * 1600);
}

}  // namespace
}  // namespace normlab
