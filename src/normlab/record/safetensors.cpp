// The safetensors format: 8 bytes of header length (little endian), a JSON object of that length, and the data.
#include "normlab/record/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/record/file_map.h"
#include "normlab/record/safetensors_header.h"

namespace normlab {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t length_bytes = 8;
constexpr size_t longest_header = 100'000'000;
constexpr size_t data_alignment = 64;

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  size_t size;
  uint64_t exponent = 0;  // its bits, all set in NaN and infinity; 0 for whole numbers
};
constexpr DtypeRow dtypes[] = {
    {Dtype::f64, "F64", 8, 0x7ff0'0000'0000'0000},
    {Dtype::f32, "F32", 4, 0x7f80'0000},
    {Dtype::f16, "F16", 2, 0x7c00},
    {Dtype::bf16, "BF16", 2, 0x7f80},
    {Dtype::i64, "I64", 8},
    {Dtype::i32, "I32", 4},
    {Dtype::i16, "I16", 2},
    {Dtype::i8, "I8", 1},
    {Dtype::u8, "U8", 1},
    {Dtype::boolean, "BOOL", 1},
};
const DtypeRow& row_of(Dtype dtype) {
  return *std::find_if(std::begin(dtypes), std::end(dtypes), [&](const DtypeRow& row) { return row.dtype == dtype; });
}

// Larger types first, so that each tensor starts at a multiple of its type's size; then by name.
std::vector<TensorView> in_file_order(std::span<const TensorView> tensors) {
  std::vector<TensorView> sorted(tensors.begin(), tensors.end());
  std::sort(sorted.begin(), sorted.end(), [](const TensorView& a, const TensorView& b) {
    const size_t size_a = dtype_size(a.dtype), size_b = dtype_size(b.dtype);
    return size_a != size_b ? size_a > size_b : a.name < b.name;
  });
  return sorted;
}

std::string header_text(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[safetensors_metadata_key] = metadata;
  size_t offset = 0;
  for (const TensorView& view : tensors) {
    if (tensor_bytes(view.dtype, view.shape) != view.bytes) {
      throw Error(path.string(),
                  concat("Tensor '", view.name, "' has ", view.bytes, " bytes, not those of its shape."));
    }
    if (view.name == safetensors_metadata_key || header.contains(view.name)) {
      throw Error(path.string(), concat("cannot hold two entries named '", view.name, "'."));
    }
    header[view.name] = {
        {"dtype", dtype_name(view.dtype)}, {"shape", view.shape}, {"data_offsets", {offset, offset + view.bytes}}};
    offset += view.bytes;
  }
  try {
    return header.dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(path.string(), "cannot hold names or metadata that are not UTF-8.");
  }
}

}  // namespace

std::string_view dtype_name(Dtype dtype) { return row_of(dtype).name; }

size_t dtype_size(Dtype dtype) { return row_of(dtype).size; }

std::optional<Dtype> find_dtype(std::string_view name) {
  for (const DtypeRow& row : dtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  const FileMap map = map_file(path);
  map_ = map.start;
  const std::byte* start = map_.get();
  const size_t size = map.size;
  if (size < length_bytes)
    throw DataError(path.string(), concat("is too short for safetensors; got ", size, " bytes."));
  uint64_t header_length = 0;
  std::memcpy(&header_length, start, length_bytes);
  const size_t most = std::min(size - length_bytes, longest_header);
  if (header_length > most) {
    throw DataError(path.string(), concat("is truncated or not a safetensors file; got a header of ", header_length,
                                          " bytes, expected at most ", most, "."));
  }
  const std::string_view text(reinterpret_cast<const char*>(start) + length_bytes, header_length);
  const std::span data(start + length_bytes + header_length, size - length_bytes - header_length);
  SafetensorsHeader header = parse_safetensors_header(path.string(), text, data);
  metadata_ = std::move(header.metadata);
  tensors_ = std::move(header.tensors);
}

void release_pages(const TensorView& tensor) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(tensor.data), end = start + tensor.bytes;
  const uintptr_t first = (start + page - 1) / page * page, last = end / page * page;  // what is all its own
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

size_t count_nonfinite(const TensorView& tensor) {
  const auto [dtype, name, size, exponent] = row_of(tensor.dtype);
  size_t count = 0;
  for (size_t at = 0; exponent != 0 && at + size <= tensor.bytes; at += size) {
    uint64_t bits = 0;
    std::memcpy(&bits, tensor.data + at, size);
    count += (bits & exponent) == exponent;
  }
  return count;
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto place = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                      [](const TensorView& view, std::string_view key) { return view.name < key; });
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

const TensorView& SafetensorsFile::at(std::string_view name) const {
  if (const TensorView* view = find(name)) return *view;
  std::vector<std::string> names;
  for (const TensorView& view : tensors_) names.push_back(view.name);
  const auto close = nearest(name, names);
  throw DataError(path_.string(),
                  concat("has no tensor '", name, "'", close ? concat("; the nearest is '", *close, "'") : "", "."));
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<TensorView> sorted = in_file_order(tensors);
  std::string header = header_text(path, sorted, metadata);
  header.append((data_alignment - (length_bytes + header.size()) % data_alignment) % data_alignment, ' ');
  const uint64_t header_length = header.size();
  StagedFile file(path);
  file.write({reinterpret_cast<const char*>(&header_length), length_bytes});
  file.write(header);
  for (const TensorView& view : sorted) file.write({reinterpret_cast<const char*>(view.data), view.bytes});
  file.commit();
}

}  // namespace normlab
