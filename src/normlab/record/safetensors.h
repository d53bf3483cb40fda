// The safetensors format: named tensors behind a JSON header, read through a memory map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

enum class Dtype { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

std::string_view dtype_name(Dtype dtype);  // as in the files: "F32"
size_t dtype_size(Dtype dtype);
std::optional<Dtype> find_dtype(std::string_view name);

struct TensorView {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;  // of a file of others, perhaps not aligned to its type
  size_t bytes = 0;
};

// A checked file; DataError when anything in it is wrong. Copies share the memory map, which the views point into.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }  // by name
  const TensorView* find(std::string_view name) const;
  const TensorView& at(std::string_view name) const;  // DataError when missing

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::byte> map_;
  std::map<std::string, std::string> metadata_;
  std::vector<TensorView> tensors_;
};

// Lets go of the pages of a mapped tensor that has been copied; they are read again when it is looked at again.
void release_pages(const TensorView& tensor);

// Values that are NaN or infinite; 0 for whole numbers.
size_t count_nonfinite(const TensorView& tensor);

// Writes the file atomically. The same tensors in any order give the same bytes; each is aligned to its type.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace normlab
