// Tensors to and from safetensors files.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "normlab/nn/parameter.h"
#include "normlab/record/safetensors.h"

namespace normlab {

void save_tensors(const std::filesystem::path& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata);

// A copy of one tensor of the file.
torch::Tensor load_tensor(const TensorView& view);

// Fills the given tensors from the file of the same names; DataError unless names and shapes are exactly the same. One
// that is undefined is left alone, but must be there.
void load_tensors(const std::filesystem::path& path, const NamedTensors& into);

// DataError when a value of the tensors, which are those of the file, is NaN or infinite.
void require_finite(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace normlab
