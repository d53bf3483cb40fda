#include "normlab/infer/sample.h"

#include <cmath>

#include "normlab/base/random.h"

namespace normlab {

using torch::Tensor;

int64_t choose_token(const Tensor& of_model_v, const SampleOptions& options, int64_t index) {
  const Tensor logits_v = of_model_v.cpu();
  if (options.temperature == 0.0) return logits_v.argmax().item<int64_t>();
  // In double and sorted, so that the cumulative sums are exact enough and the order is fixed.
  const auto [values, tokens] = (logits_v.to(torch::kFloat64) / options.temperature).sort(/*stable=*/true, 0, true);
  int64_t kept = values.size(0);
  if (options.top_k > 0) kept = std::min<int64_t>(kept, options.top_k);
  const Tensor weights = values.slice(0, 0, kept).softmax(0);
  if (options.top_p < 1.0) {
    const int64_t nucleus = (weights.cumsum(0) < options.top_p).sum().item<int64_t>() + 1;
    kept = std::min(kept, nucleus);
  }
  const Tensor sums = weights.slice(0, 0, kept).cumsum(0);
  const double target = draw_uniform(stream_key(options.seed), static_cast<uint64_t>(index)) * sums[-1].item<double>();
  const int64_t place = std::min<int64_t>((sums <= target).sum().item<int64_t>(), kept - 1);
  return tokens[place].item<int64_t>();
}

void generate(const DecoderLm& model, std::vector<int64_t> prompt, const SampleOptions& options,
              const std::function<bool(int64_t)>& emit) {
  torch::NoGradGuard no_grad;
  model.pack_weights();
  const auto window = static_cast<size_t>(model.config().seq_len);
  std::vector<KvCache> caches;
  std::vector<int64_t> text = std::move(prompt);
  size_t cached = 0;  // tokens of the text, from its start, whose keys are in the caches
  for (int made = 0; made < options.max_tokens; ++made) {
    if (caches.empty() || text.size() > window) {
      if (text.size() > window) text.erase(text.begin(), text.end() - static_cast<int64_t>((window + 1) / 2));
      caches.assign(static_cast<size_t>(model.config().n_layers), {});
      cached = 0;
    }
    const auto fresh = static_cast<int64_t>(text.size() - cached);
    const Tensor tokens = torch::tensor(torch::ArrayRef<int64_t>(text).slice(cached), torch::kInt64).view({1, fresh});
    const Tensor logits = model.logits(tokens, Pass{}, &caches)[0][-1];
    cached = text.size();
    text.push_back(choose_token(logits, options, made));
    if (!emit(text.back())) return;
  }
}

}  // namespace normlab
