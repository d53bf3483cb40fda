#include "normlab/train/average.h"

#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/record/run_dir.h"
#include "normlab/train/checkpoint.h"

namespace normlab {

using torch::Tensor;

void load_average(const std::filesystem::path& run, size_t count, EncoderDecoder& model) {
  std::vector<Checkpoint> there = RunDir::open(run).checkpoints();
  std::erase_if(there, [](const Checkpoint& each) { return each.step == 0; });  // not trained yet
  if (there.size() < count)
    throw UsageError(run.string(), concat("has ", there.size(), " checkpoints, expected at least ", count,
                                          ". train.keep_last sets how many are kept."));
  std::vector<Tensor> sums;
  for (size_t i = there.size() - count; i < there.size(); ++i) {
    load_weights(there[i].path, model);
    size_t place = 0;
    for (auto& [name, tensor] : model.parameters()) {
      const Tensor value = tensor.detach().to(torch::kFloat64);  // the order of the sum must not show
      if (place == sums.size())
        sums.push_back(value);
      else
        sums[place] = sums[place] + value;
      ++place;
    }
  }
  const torch::NoGradGuard no_grad;
  size_t place = 0;
  for (auto& [name, tensor] : model.parameters()) tensor.copy_(sums[place++] / static_cast<double>(count));
}

}  // namespace normlab
