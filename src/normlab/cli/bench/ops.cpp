// normlab bench ops: the operators around attention, forward and backward, ours and PyTorch's.
#include <ATen/Parallel.h>

#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/bench/bench.h"
#include "normlab/cli/signals.h"
#include "normlab/ops/activation.h"
#include "normlab/ops/add_norm.h"
#include "normlab/ops/cross_entropy.h"
#include "normlab/ops/embedding.h"
#include "normlab/ops/linear.h"
#include "normlab/train/adamw.h"

namespace normlab {
namespace {

using torch::Tensor;

constexpr int tokens = 1024;  // of a pass through the layers, see train/stepper.cpp
constexpr int turns = 16;     // in a repetition, so that it is long against the clock

struct Op {
  std::string name;
  double flops = 0.0;
  std::function<void()> run;
};

Tensor leaf(Tensor values) { return values.requires_grad_(true); }

// Forward, and backward with a gradient that is given.
std::function<void()> both_ways(std::vector<Tensor> leaves, std::function<Tensor()> forward) {
  const Tensor d_out = torch::randn_like(forward().detach());
  return [=]() mutable {
    forward().backward(d_out);
    for (Tensor& one : leaves) one.mutable_grad().reset();
  };
}

Op linear_op(const std::string& name, int64_t in, int64_t out, bool fused) {
  const Tensor x = leaf(torch::randn({tokens, in})), weight = leaf(torch::randn({out, in}));
  auto packed = std::make_shared<PackedWeight>();
  packed->pack(weight);
  return {name, 6.0 * tokens * static_cast<double>(in * out), both_ways({x, weight}, [=] {
            return fused ? fused_linear(x, weight, {}, packed) : torch::linear(x, weight);
          })};
}

Op add_norm_op(int64_t width, bool fused) {
  const Tensor x = leaf(torch::randn({tokens, width})), branch = leaf(torch::randn({tokens, width}));
  const Tensor weight = leaf(torch::ones({width}));
  const NormForm form{.fused = fused, .kind = SublayerNorm::layer};
  const NormWeights weights{.weight = weight};
  return {"add_norm", 0.0, both_ways({x, branch, weight}, [=] {
            const NormedSum out = add_norm(x, branch, {}, form, weights);
            return out.y + out.sum;
          })};
}

Op activation_op(int64_t width, bool fused) {
  const Tensor x = leaf(torch::randn({tokens, 4 * width}));
  return {"gelu", 0.0, both_ways({x}, [=] { return activate(x, Activation::gelu, fused); })};
}

Op loss_op(bool fused) {
  const Tensor logits = leaf(torch::randn({tokens, bench_vocab_size}));
  const Tensor targets = torch::tensor(random_tokens(tokens, 1), torch::kInt64);
  return {"cross_entropy", 0.0, both_ways({logits}, [=] { return cross_entropy(logits * 1.0, targets, fused); })};
}

Op embedding_op(int64_t width, bool fused) {
  const Tensor table = leaf(torch::randn({bench_vocab_size, width}));
  const Tensor index = torch::tensor(random_tokens(tokens, 2), torch::kInt64);
  return {"embedding", 0.0, both_ways({table}, [=] { return embedding(table, index, fused); })};
}

// Clip and update of one layer's weights.
Op adamw_op(int64_t width, bool fused) {
  const std::vector<Parameter> parameters = {{"weight", torch::randn({12 * width, width})}};
  auto optimizer = std::make_shared<AdamW>(parameters, AdamWSettings{.weight_decay = 0.1, .fused = fused});
  const Gradients gradients = {torch::randn({12 * width, width})};
  return {"adamw", 0.0, [=] { optimizer->step({gradients}, /*lr=*/1e-4, /*clip=*/1.0); }};
}

std::vector<Op> ops_of(int64_t width, bool fused) {
  return {linear_op("linear", width, width, fused),
          linear_op("linear_in", width, 4 * width, fused),
          linear_op("linear_out", 4 * width, width, fused),
          add_norm_op(width, fused),
          activation_op(width, fused),
          loss_op(fused),
          embedding_op(width, fused),
          adamw_op(width, fused)};
}

Exit bench_ops(BenchOptions chosen) {
  use_threads(chosen.threads == 0 ? 1 : chosen.threads);
  if (chosen.configs.empty()) chosen.configs = {"L", "S"};
  if (chosen.paths.empty()) chosen.paths = {"fused", "composite"};
  Bench bench("ops", chosen);
  for (const std::string& config : chosen.configs) {
    const int64_t width = bench_config(config, "", "fused").model.d_model;
    std::vector<std::vector<Op>> by_path;
    for (const std::string& path : chosen.paths) by_path.push_back(ops_of(width, path == "fused"));
    for (size_t i = 0; i < by_path.front().size() && !stop_requested(); ++i) {
      std::vector<Contender> contenders;
      for (size_t path = 0; path < by_path.size(); ++path) {
        const Op& op = by_path[path][i];
        contenders.push_back(
            {.row = {.config = config, .scheme = op.name, .path = chosen.paths[path], .flops = turns * op.flops},
             .run = [run = op.run] {
               return timed([&] {
                 for (int turn = 0; turn < turns; ++turn) run();
               });
             }});
      }
      bench.measure(std::move(contenders));
    }
  }
  return bench.report("bench step");
}

}  // namespace

void add_bench_ops(CLI::App& bench, Exit& exit) {
  auto* verb = bench.add_subcommand("ops", "the operators around attention, forward and backward, 1024 tokens");
  auto options = std::make_shared<BenchOptions>();
  options->add_configs_to(*verb);
  options->add_measuring_to(*verb, {"fused", "composite"});
  verb->footer(
      "The column scheme names the operator; a repetition is 16 calls. One thread unless --threads says otherwise, as\n"
      "in a training step every thread runs whole layers. FLOP/s counts matrix products only; ratio is that of an\n"
      "operator's rows.\n"
      "Example:\n"
      "  normlab bench ops --config S --json");
  verb->callback([options, &exit] { exit = bench_ops(*options); });
}

}  // namespace normlab
