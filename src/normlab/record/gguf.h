// The GGUF format of llama.cpp, version 3: keys with values, and named tensors in float32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "normlab/record/safetensors.h"

namespace normlab {

using GgufValue = std::variant<bool, uint32_t, float, std::string, std::vector<int32_t>, std::vector<std::string>>;
struct GgufPair {
  std::string key;
  GgufValue value;
};

// Writes the file atomically, pairs and tensors in the given order.
void write_gguf(const std::filesystem::path& path, std::span<const GgufPair> pairs,
                std::span<const TensorView> tensors);

// The tensors of a file; DataError when anything about them is wrong, or one is not float32. Copies share the memory
// map, which the views point into.
class GgufFile {
 public:
  explicit GgufFile(const std::filesystem::path& path);
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const TensorView& at(const std::string& name) const;  // DataError when missing

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::byte> map_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace normlab
