// normlab bench attention: attention alone, forward and backward, against PyTorch's kernel on inputs that were
// normalised beforehand.
#include "normlab/kernels/attention.h"

#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/signals.h"
#include "normlab/config/parameters.h"
#include "normlab/ops/attention.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int batch = 2, n_heads = 6, d_head = 64;  // batch x heads = 12

struct AttentionOptions {
  BenchOptions bench;
  std::vector<int64_t> lengths = {256, 512, 1024, 2048, 4096, 8192};
  int window = 0;
};

// Forward and twice backward, two products each, of which only what is visible counts: the second term of
// config/flops.cpp.
double flops_of_attention(int64_t length, int window) {
  const auto all = static_cast<double>(length);
  const double beyond = window > 0 ? std::max(0.0, all - window) : 0.0;
  return 6.0 * batch * n_heads * d_head * (all * all - beyond * beyond);
}

// Counts what libtorch allocates in this thread, while a DebugInfoGuard holds it.
class TensorMeter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    now_ += bytes;
    most_ = std::max(most_, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t most() const { return most_; }

 private:
  int64_t now_ = 0, most_ = 0;
};

// The call and the gain of a scheme.
struct Setup {
  AttentionCall call;
  AttentionWeights weights;
};
Setup setup_of(const Config& config) {
  const NormScheme& norm = config.norm;
  Setup made{.call = {.form = attention_form(norm, {.d_head = d_head, .d_model = config.model.d_model}),
                      .fused = config.model.kernels == Kernels::fused},
             .weights = {}};
  made.call.form.window = config.model.window;
  const int64_t gains = norm.gain == GainSharing::model ? 1 : gain_size(config.model, norm);
  if (gains > 0) made.weights.gain = torch::full({gains}, initial_gain(config.model, norm)).requires_grad_(true);
  return made;
}

// One case: leaves, and a function of them. Ours takes the projection's output, PyTorch's kernel what is left of it
// after normalisation and transposition.
struct AttentionCase {
  std::vector<Tensor> leaves;
  std::function<Tensor()> forward;
  Tensor d_out;
  int64_t scratch_bytes = 0;  // that libtorch does not allocate

  void run() {
    for (Tensor& leaf : leaves) leaf.mutable_grad().reset();
    forward().backward(d_out);
  }
  // What one run needs at most, beyond its output and the gradients of its inputs.
  int64_t extra_bytes() {
    for (Tensor& leaf : leaves) leaf.mutable_grad().reset();
    auto meter = std::make_shared<TensorMeter>();
    {
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
      forward().backward(d_out);
    }
    int64_t needed = static_cast<int64_t>(d_out.nbytes());
    for (const Tensor& leaf : leaves) needed += static_cast<int64_t>(leaf.nbytes());
    return std::max<int64_t>(0, meter->most() - needed) + scratch_bytes;
  }
};

std::shared_ptr<AttentionCase> make_case(const Config& config, const std::string& path) {
  auto one = std::make_shared<AttentionCase>();
  const int64_t t = config.model.seq_len;
  const auto [call, weights] = setup_of(config);
  torch::manual_seed(1);
  const Tensor qkv = torch::randn({batch, t, 3 * n_heads, d_head});
  if (path == "sdpa") {
    const torch::NoGradGuard no_grad;
    const auto parts = qkv.chunk(3, 2);
    for (const Tensor& part :
         {normalise_queries(parts[0], call, weights, 0), normalise_keys(parts[1], call, weights, 0), parts[2]})
      one->leaves.push_back(part.transpose(1, 2).contiguous().requires_grad_(true));
    one->forward = [leaves = one->leaves, scale = call.form.logit_scale] {
      return torch::scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                 /*is_causal=*/true, scale);
    };
    one->d_out = torch::randn({batch, n_heads, t, d_head});
    return one;
  }
  one->leaves = {qkv.requires_grad_(true)};
  if (weights.gain.defined()) one->leaves.push_back(weights.gain);
  one->forward = [qkv, call = call, weights = weights] { return attention(qkv, n_heads, call, weights); };
  one->d_out = torch::randn({batch, t, n_heads, d_head});
  if (call.fused) {
    const AttentionSpec spec{.tq = t, .tk = t, .d = d_head};
    one->scratch_bytes = static_cast<int64_t>(attention_scratch_bytes(spec, /*backward=*/true)) *
                         std::min<int64_t>(at::get_num_threads(), batch * n_heads);
  }
  return one;
}

Contender contender(int64_t length, int window, const std::string& scheme, const std::string& path) {
  const std::string model = concat("[model]\nn_heads = ", n_heads, "\nd_model = ", n_heads * d_head,
                                   "\nseq_len = ", length, "\nwindow = ", window, "\n");
  const auto one = make_case(bench_config(model, scheme, path == "fused" ? "fused" : "composite"), path);
  Contender made;
  made.row = {.config = concat("T=", length, window > 0 ? concat(" window=", window) : ""),
              .scheme = scheme,
              .path = path,
              .flops = flops_of_attention(length, window)};
  made.run = [one] { return timed([&] { one->run(); }); };
  made.finish = [one](BenchRow& row) { row.extra_bytes = one->extra_bytes(); };
  return made;
}

Exit bench_attention(AttentionOptions options) {
  use_threads(options.bench.threads);
  if (options.bench.schemes.empty()) options.bench.schemes = {"lp:2.5"};
  if (options.bench.paths.empty()) options.bench.paths = {"fused", options.window > 0 ? "composite" : "sdpa"};
  if (options.window > 0 && std::count(options.bench.paths.begin(), options.bench.paths.end(), "sdpa") > 0)
    throw UsageError("--path", "sdpa has no window; expected fused or composite with --window.");
  Bench bench("attention", options.bench);
  for (const int64_t length : options.lengths) {
    std::vector<Contender> contenders;
    for (const std::string& scheme : options.bench.schemes)
      for (const std::string& path : options.bench.paths)
        contenders.push_back(contender(length, options.window, scheme, path));
    bench.measure(std::move(contenders));
    if (stop_requested()) break;
  }
  return bench.report("bench decode");
}

}  // namespace

void add_bench_attention(CLI::App& bench, Exit& exit) {
  auto* verb =
      bench.add_subcommand("attention", "causal attention alone, forward and backward: 12 heads of 64 channels");
  auto options = std::make_shared<AttentionOptions>();
  verb->add_option("--lengths", options->lengths, "numbers of tokens, default 256 512 1024 2048 4096 8192")
      ->check(whole_number(1, 1 << 20))
      ->type_name("T");
  verb->add_option("--window", options->window, "keys that a query sees; 0 = all before it")
      ->check(whole_number(0, 1 << 24))
      ->type_name("W");
  options->bench.add_to(*verb, {"fused", "composite", "sdpa"});
  verb->footer(
      "Paths: fused normalises and attends in one kernel; composite does so with PyTorch's operators; sdpa is "
      "PyTorch's\n"
      "scaled_dot_product_attention alone, on queries and keys that were normalised beforehand. Default: fused sdpa,\n"
      "with a window fused composite, with the scheme lp:2.5.\n"
      "Example:\n"
      "  normlab bench attention --lengths 256 1024 4096 --scheme qknorm lp:3");
  verb->callback([options, &exit] { exit = bench_attention(*options); });
}

}  // namespace normlab
