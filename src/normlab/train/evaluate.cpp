#include "normlab/train/evaluate.h"

#include "normlab/models/device.h"

namespace normlab {

std::optional<double> evaluate(const DecoderLm& model, const Tokens& tokens, std::span<const EvalWindow> windows,
                               int batch_size, const StopToken& stop, RankGroup* ranks) {
  torch::NoGradGuard no_grad;
  double total = 0.0;
  int64_t n_tokens = 0;
  int batch = 0;
  for (size_t first = 0; first < windows.size(); ++batch) {
    if (!ranks && stop()) return std::nullopt;
    // Windows of one length go together; the last window of a text may be shorter.
    size_t end = first;
    const int length = windows[first].length;
    while (end < windows.size() && end < first + static_cast<size_t>(batch_size) && windows[end].length == length)
      ++end;
    if (ranks && batch % ranks->size() != ranks->rank()) {
      first = end;
      continue;
    }
    const auto rows = static_cast<int64_t>(end - first);
    const auto options = host_tokens(model.device());
    const torch::Tensor inputs = torch::empty({rows, length}, options), targets = torch::empty({rows, length}, options);
    for (int64_t row = 0; row < rows; ++row) {
      const auto begin = static_cast<size_t>(windows[first + static_cast<size_t>(row)].begin);
      const auto count = static_cast<size_t>(length);
      tokens.copy_window(begin, {inputs.data_ptr<int64_t>() + row * length, count},
                         {targets.data_ptr<int64_t>() + row * length, count});
    }
    total += model.loss(inputs, targets, Pass{}).item<double>() * static_cast<double>(rows * length);
    n_tokens += rows * length;
    first = end;
  }
  if (ranks) {
    const std::vector<double> all = sum(*ranks, {total, static_cast<double>(n_tokens)});
    return all[0] / all[1];
  }
  return total / static_cast<double>(n_tokens);
}

}  // namespace normlab
