// Train a tiny language model on a string and let it continue a prompt.
#include <cstdio>

#include "normlab/data/tokenizer.h"
#include "normlab/infer/sample.h"
#include "normlab/train/stepper.h"

using namespace normlab;

int main() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "to be or not to be. ";
  const Tokenizer tokenizer = Tokenizer::make("char", text);
  const std::vector<int32_t> encoded = tokenizer.encode(text, "text");
  const torch::Tensor tokens = torch::tensor(std::vector<int64_t>(encoded.begin(), encoded.end()));

  ModelConfig config{.n_layers = 2, .n_heads = 2, .d_model = 64, .seq_len = 32};
  const NormScheme& scheme = find_scheme("lp");  // Lp-QKNorm, p = 3
  resolve_model(config, scheme);
  Stepper stepper(DecoderLm(config, scheme, tokenizer.vocab_size(), /*seed=*/1), {});

  constexpr int64_t b = 8, t = 32;
  for (int64_t step = 0; step < 200; ++step) {
    std::vector<torch::Tensor> inputs, targets;
    for (int64_t row = 0; row < b; ++row) {
      const int64_t start = (step * b + row) * 7 % (tokens.size(0) - t - 1);
      inputs.push_back(tokens.slice(0, start, start + t));
      targets.push_back(tokens.slice(0, start + 1, start + t + 1));
    }
    const Batch batch{torch::stack(inputs), torch::stack(targets)};
    const double loss = stepper.step({batch}, {.training = true, .seed = 1, .step = step}, 3e-3, /*clip=*/1.0).loss;
    if (step % 50 == 0) std::printf("step %3ld  loss %.3f\n", static_cast<long>(step), loss);
  }

  const std::string prompt = "to be";
  const std::vector<int32_t> start = tokenizer.encode(prompt, "prompt");
  std::vector<int32_t> out;
  const torch::NoGradGuard no_grad;
  generate(stepper.model(), {start.begin(), start.end()}, {.max_tokens = 24, .temperature = 0.0}, [&](int64_t token) {
    out.push_back(static_cast<int32_t>(token));
    return true;
  });
  const std::string continued = prompt + tokenizer.decode(out);
  std::printf("%s\n", continued.c_str());
  return continued.find("not to be") == std::string::npos ? 1 : 0;
}
