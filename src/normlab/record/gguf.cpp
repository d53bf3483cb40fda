// The file: magic, version, counts; each key with the type of its value; name, sizes from the inside out, type and
// offset of each tensor; then their data, all aligned.
#include "normlab/record/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "normlab/base/error.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/record/file_map.h"

namespace normlab {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t gguf_magic = 0x46554747, gguf_version = 3;  // "GGUF"
constexpr uint32_t float32 = 0;                                // of a tensor
constexpr size_t alignment = 32;
// Types of values; all others have a fixed size.
enum : uint32_t { type_int32 = 5, type_string = 8, type_array = 9, n_types = 13 };
constexpr size_t value_sizes[n_types] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

size_t aligned(size_t size) { return (size + alignment - 1) / alignment * alignment; }

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(const std::string& value) {
    number(uint64_t{value.size()});
    text_ += value;
  }
  void value(const GgufValue& value) {
    constexpr uint32_t types[] = {7, 4, 6, type_string, type_array, type_array};  // in the order of the variant
    number(types[value.index()]);
    std::visit([this](const auto& held) { write(held); }, value);
  }
  std::string finish() {
    text_.resize(aligned(text_.size()));
    return std::move(text_);
  }

 private:
  void write(bool value) { number(uint8_t{value}); }
  void write(uint32_t value) { number(value); }
  void write(float value) { number(value); }
  void write(const std::string& value) { string(value); }
  void write(const std::vector<int32_t>& list) {
    number(uint32_t{type_int32}), number(uint64_t{list.size()});
    for (const int32_t value : list) number(value);
  }
  void write(const std::vector<std::string>& list) {
    number(uint32_t{type_string}), number(uint64_t{list.size()});
    for (const std::string& value : list) string(value);
  }

  std::string text_;
};

// Reads numbers and strings and never beyond the end.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string where) : rest_(bytes), where_(std::move(where)) {}

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string string() {
    const auto length = number<uint64_t>();
    return {reinterpret_cast<const char*>(take(length)), length};
  }
  void skip_value(uint32_t type, bool in_array = false) {
    if (type == type_string) {
      string();
    } else if (type == type_array && !in_array) {
      const auto element = number<uint32_t>();
      for (auto left = number<uint64_t>(); left > 0; --left) skip_value(element, /*in_array=*/true);
    } else if (type < n_types && value_sizes[type] > 0) {
      take(value_sizes[type]);
    } else {
      throw DataError(where_, concat("has a value of the unknown type ", type, "."));
    }
  }
  size_t left() const { return rest_.size(); }

 private:
  const std::byte* take(uint64_t size) {
    if (size > rest_.size()) throw DataError(where_, "is truncated or not a GGUF file.");
    const std::byte* start = rest_.data();
    rest_ = rest_.subspan(size);
    return start;
  }

  std::span<const std::byte> rest_;
  std::string where_;
};

TensorView read_info(Reader& reader, const std::string& where, uint64_t& offset) {
  TensorView view;
  view.name = reader.string();
  const auto dimensions = reader.number<uint32_t>();
  if (dimensions > 4)
    throw DataError(where, concat("'", view.name, "' has ", dimensions, " dimensions, at most 4 can be."));
  uint64_t entries = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = reader.number<uint64_t>();
    if (size == 0 || size > (uint64_t{1} << 40) / entries)
      throw DataError(where, concat("'", view.name, "' has an impossible size, ", size, "."));
    entries *= size;
    view.shape.insert(view.shape.begin(), static_cast<int64_t>(size));
  }
  if (const auto type = reader.number<uint32_t>(); type != float32)
    throw DataError(where, concat("'", view.name, "' is of type ", type, "; only float32, type 0, is read."));
  view.bytes = entries * sizeof(float);
  offset = reader.number<uint64_t>();
  return view;
}

}  // namespace

void write_gguf(const std::filesystem::path& path, std::span<const GgufPair> pairs,
                std::span<const TensorView> tensors) {
  Writer header;
  header.number(gguf_magic), header.number(gguf_version);
  header.number(uint64_t{tensors.size()}), header.number(uint64_t{pairs.size()});
  for (const GgufPair& pair : pairs) header.string(pair.key), header.value(pair.value);
  uint64_t offset = 0;
  for (const TensorView& view : tensors) {
    if (view.dtype != Dtype::f32) throw Error(path.string(), concat("'", view.name, "' is not in float32."));
    header.string(view.name);
    header.number(static_cast<uint32_t>(view.shape.size()));
    for (size_t i = view.shape.size(); i > 0; --i) header.number(static_cast<uint64_t>(view.shape[i - 1]));
    header.number(float32), header.number(offset);
    offset += aligned(view.bytes);
  }
  StagedFile file(path);
  file.write(header.finish());
  for (const TensorView& view : tensors) {
    file.write({reinterpret_cast<const char*>(view.data), view.bytes});
    file.write(std::string(aligned(view.bytes) - view.bytes, '\0'));
  }
  file.commit();
}

GgufFile::GgufFile(const std::filesystem::path& path) : path_(path) {
  const FileMap map = map_file(path);
  map_ = map.start;
  const std::string where = path.string();
  Reader reader({map_.get(), map.size}, where);
  if (reader.number<uint32_t>() != gguf_magic) throw DataError(where, "is not a GGUF file.");
  if (const auto got = reader.number<uint32_t>(); got != gguf_version)
    throw DataError(where, concat("is GGUF of version ", got, "; expected ", gguf_version, "."));
  const auto n_tensors = reader.number<uint64_t>(), n_pairs = reader.number<uint64_t>();
  for (uint64_t i = 0; i < n_pairs; ++i) {
    reader.string();
    reader.skip_value(reader.number<uint32_t>());
  }
  std::vector<std::pair<TensorView, uint64_t>> found;
  for (uint64_t i = 0, offset = 0; i < n_tensors; ++i) {
    TensorView view = read_info(reader, where, offset);
    found.emplace_back(std::move(view), offset);
  }
  const size_t start = std::min(aligned(map.size - reader.left()), map.size), data = map.size - start;
  for (auto& [view, offset] : found) {
    if (offset % alignment != 0 || offset > data || view.bytes > data - offset)
      throw DataError(where, concat("the data of '", view.name, "' is not in the file: it is truncated or damaged."));
    view.data = map_.get() + start + offset;
    if (!tensors_.emplace(view.name, view).second)
      throw DataError(where, concat("has two tensors named '", view.name, "'."));
  }
}

const TensorView& GgufFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw DataError(path_.string(), concat("has no tensor '", name, "'."));
  return found->second;
}

}  // namespace normlab
