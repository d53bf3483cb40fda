// A scheme of one's own without a line in the library: a NormScheme is a value. Trains it, and the row it came from.
#include <cstdio>

#include "normlab/train/stepper.h"

using namespace normlab;

// What a new row of src/norm/catalogue.cpp would say.
NormScheme capped_rms() {
  NormScheme scheme = find_scheme("rms");
  scheme.name = "capped-rms";
  scheme.soft_cap = 30.0;
  return scheme;
}

double loss_after(int steps, const NormScheme& scheme) {
  check_scheme(scheme);
  ModelConfig config;
  config.n_layers = 2;
  config.n_heads = 2;
  config.d_model = 32;
  config.seq_len = 16;
  resolve_model(config, scheme);

  constexpr int vocab_size = 20;
  Stepper stepper(DecoderLm(config, scheme, vocab_size, /*seed=*/1), {});
  const torch::Tensor text = torch::arange(8 * 17).view({8, 17}).remainder(vocab_size);  // counts on
  const Batch batch{text.slice(1, 0, 16).contiguous(), text.slice(1, 1).contiguous()};
  double loss = 0.0;
  for (int step = 0; step < steps; ++step)
    loss = stepper.step({batch}, {.training = true, .seed = 1, .step = step}, /*lr=*/1e-2, /*clip=*/1.0).loss;
  return loss;
}

int main() {
  bool learned = true;
  for (const NormScheme& scheme : {find_scheme("rms"), capped_rms()}) {
    const double first = loss_after(1, scheme), last = loss_after(20, scheme);
    std::printf("%-12s first loss %.3f, after 20 steps %.3f\n", scheme.name.c_str(), first, last);
    learned = learned && last < 0.5 * first;
  }
  return learned ? 0 : 1;
}
