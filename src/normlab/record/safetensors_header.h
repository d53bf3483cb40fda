// The header of a safetensors file: everything in it is checked before anything is believed.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/record/safetensors.h"

namespace normlab {

inline constexpr const char* safetensors_metadata_key = "__metadata__";

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorView> tensors;  // by name
};

// Bytes of a tensor of that shape, or nothing when they overflow.
std::optional<size_t> tensor_bytes(Dtype dtype, const std::vector<int64_t>& shape);

// DataError, about the file `where`, unless the header is sound and its tensors cover the data exactly once.
SafetensorsHeader parse_safetensors_header(const std::string& where, std::string_view text,
                                           std::span<const std::byte> data);

}  // namespace normlab
