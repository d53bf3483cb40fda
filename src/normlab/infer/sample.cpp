#include "normlab/infer/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "normlab/base/random.h"
#include "normlab/nn/decode_state.h"

namespace normlab {
namespace {

using torch::Tensor;

// The larger first, and of equal ones the first, as a stable sort has them; NaN counts as the largest.
bool comes_before(std::span<const float> logits, int64_t a, int64_t b) {
  const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
  if (std::isnan(x) != std::isnan(y)) return std::isnan(x);
  return x > y || (!(x < y) && a < b);
}

int64_t most_probable(std::span<const float> logits) {
  int64_t best = 0;
  for (int64_t i = 1; i < static_cast<int64_t>(logits.size()); ++i)
    if (comes_before(logits, i, best)) best = i;
  return best;
}

// Leaves of a text what the model continues it from; whether it left something out.
bool fit_window(std::vector<int64_t>& text, size_t window) {
  if (text.size() <= window) return false;
  text.erase(text.begin(), text.end() - static_cast<int64_t>((window + 1) / 2));
  return true;
}

using Emit = std::function<bool(size_t, int64_t)>;

void generate_fused(const std::shared_ptr<const DecodePlan>& plan, std::vector<std::vector<int64_t>> texts,
                    const SampleOptions& options, const Emit& emit) {
  const auto window = static_cast<size_t>(plan->seq_len);
  DecodeState state(plan, texts.size());
  std::vector<size_t> number(texts.size());  // of the texts that are not finished
  std::iota(number.begin(), number.end(), size_t{0});
  std::vector<size_t> read(texts.size(), 0);  // tokens of each that the state has
  std::vector<int64_t> tokens, counts, going_on;
  for (int made = 0; made < options.max_tokens && !texts.empty(); ++made) {
    tokens.clear(), counts.clear(), going_on.clear();
    for (size_t i = 0; i < texts.size(); ++i) {
      if (fit_window(texts[i], window)) state.clear(i), read[i] = 0;
      tokens.insert(tokens.end(), texts[i].begin() + static_cast<int64_t>(read[i]), texts[i].end());
      counts.push_back(static_cast<int64_t>(texts[i].size() - read[i]));
      read[i] = texts[i].size();
    }
    const Tensor logits = state.read(tokens, counts);
    const auto v = static_cast<size_t>(logits.size(1));
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i].push_back(choose_token(floats_of(logits).subspan(i * v, v), options, made));
      if (emit(number[i], texts[i].back())) going_on.push_back(static_cast<int64_t>(i));
    }
    if (going_on.size() == texts.size()) continue;
    state.select(going_on);
    for (size_t i = 0; i < going_on.size(); ++i) {
      const auto from = static_cast<size_t>(going_on[i]);
      if (from != i) texts[i] = std::move(texts[from]);
      number[i] = number[from], read[i] = read[from];
    }
    texts.resize(going_on.size());
  }
}

void generate_composite(const DecoderLm& model, std::vector<int64_t> text, const SampleOptions& options,
                        const std::function<bool(int64_t)>& emit) {
  std::vector<KvCache> caches;
  size_t cached = 0;  // tokens of the text, from its start, whose keys are in the caches
  for (int made = 0; made < options.max_tokens; ++made) {
    if (fit_window(text, static_cast<size_t>(model.config().seq_len)) || caches.empty()) {
      caches.assign(static_cast<size_t>(model.config().n_layers), {});
      cached = 0;
    }
    const auto fresh = static_cast<int64_t>(text.size() - cached);
    const Tensor tokens = torch::tensor(torch::ArrayRef<int64_t>(text).slice(cached), torch::kInt64).view({1, fresh});
    const Tensor logits = model.logits(tokens, Pass{}, &caches)[0][-1].to(torch::kCPU, torch::kFloat32);
    cached = text.size();
    text.push_back(choose_token(floats_of(logits), options, made));
    if (!emit(text.back())) return;
  }
}

}  // namespace

std::span<const float> floats_of(const Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

int64_t choose_token(std::span<const float> logits, const SampleOptions& options, int64_t index) {
  if (options.temperature == 0.0) return most_probable(logits);
  // In double and sorted, so that the cumulative sums are exact enough and the order is fixed.
  thread_local std::vector<int64_t> order;
  thread_local std::vector<double> sums;
  order.resize(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  size_t kept = logits.size();
  if (options.top_k > 0) kept = std::min(kept, static_cast<size_t>(options.top_k));
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(),
                    [&](int64_t a, int64_t b) { return comes_before(logits, a, b); });
  const auto scaled = [&](size_t i) { return double{logits[static_cast<size_t>(order[i])]} / options.temperature; };
  sums.resize(kept);
  double total = 0.0;
  for (size_t i = 0; i < kept; ++i) sums[i] = total += std::exp(scaled(i) - scaled(0));
  // The nucleus: the fewest of the most probable that reach the share.
  if (options.top_p < 1.0) {
    const auto reached =
        std::find_if(sums.begin(), sums.end(), [&](double sum) { return sum / total >= options.top_p; });
    kept = std::min(kept, static_cast<size_t>(reached - sums.begin()) + 1);
  }
  const double target = draw_uniform(stream_key(options.seed), static_cast<uint64_t>(index)) * sums[kept - 1];
  const auto place = std::find_if(sums.begin(), sums.begin() + static_cast<int64_t>(kept),
                                  [&](double sum) { return !(sum <= target); }) -
                     sums.begin();
  return order[std::min(static_cast<size_t>(place), kept - 1)];
}

Generator::Generator(const DecoderLm& model)
    : model_(model), plan_(model.config().kernels == Kernels::fused ? model.decode_plan() : nullptr) {}

void Generator::operator()(std::vector<std::vector<int64_t>> prompts, const SampleOptions& options,
                           const Emit& emit) const {
  const torch::NoGradGuard no_grad;
  if (plan_) return generate_fused(plan_, std::move(prompts), options, emit);
  for (size_t i = 0; i < prompts.size(); ++i)
    generate_composite(model_, std::move(prompts[i]), options, [&](int64_t token) { return emit(i, token); });
}

void generate(const DecoderLm& model, std::vector<int64_t> prompt, const SampleOptions& options,
              const std::function<bool(int64_t)>& emit) {
  std::vector<std::vector<int64_t>> one;
  one.push_back(std::move(prompt));
  const Generator make(model);
  make(std::move(one), options, [&](size_t, int64_t token) { return emit(token); });
}

}  // namespace normlab
