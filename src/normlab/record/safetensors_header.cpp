// The header of a safetensors file, by a JSON parser that is watched for what it would let pass.
#include "normlab/record/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using nlohmann::json;

constexpr int deepest_header = 4;

// A name from a file, safe to print.
std::string quoted(const std::string& name) {
  constexpr size_t longest = 80;
  const std::string text = json(name).dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

// Checks a header and turns its entries into views of the data.
class HeaderReader {
 public:
  HeaderReader(const std::string& where, std::span<const std::byte> data) : where_(where), data_(data) {}

  json parse(std::string_view text) const;
  std::map<std::string, std::string> metadata(const json& header) const;
  std::vector<TensorView> tensors(const json& header) const;

 private:
  [[noreturn]] void fail(const std::string& what) const { throw DataError(where_, what + " The file is damaged."); }
  TensorView tensor(const std::string& name, const json& entry) const;
  std::vector<size_t> numbers(const std::string& name, const json& entry, const char* key) const;
  void check_coverage(const std::vector<TensorView>& tensors) const;

  std::string where_;
  std::span<const std::byte> data_;
};

// The parser itself would keep the last of two equal keys, and build values of any depth.
json HeaderReader::parse(std::string_view text) const {
  std::vector<std::set<std::string>> keys_of_open_objects;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest_header) fail("The header is nested too deeply.");
    if (event == json::parse_event_t::object_start) keys_of_open_objects.emplace_back();
    if (event == json::parse_event_t::object_end) keys_of_open_objects.pop_back();
    if (event == json::parse_event_t::key && !keys_of_open_objects.back().insert(value.get<std::string>()).second) {
      fail(concat("The header holds ", quoted(value.get<std::string>()), " twice."));
    }
    return true;
  };
  try {
    json header = json::parse(text.begin(), text.end(), watch);
    if (!header.is_object()) fail(concat("The header is a JSON ", header.type_name(), ", expected an object."));
    return header;
  } catch (const json::parse_error& error) {
    fail(concat("The header is not valid JSON at byte ", error.byte, "."));
  } catch (const json::exception&) {
    fail("The header holds a number that is out of range.");
  }
}

std::map<std::string, std::string> HeaderReader::metadata(const json& header) const {
  std::map<std::string, std::string> found;
  const auto entry = header.find(safetensors_metadata_key);
  if (entry == header.end()) return found;
  if (!entry->is_object()) fail("The metadata is not an object of strings.");
  for (const auto& [key, value] : entry->items()) {
    if (!value.is_string()) fail(concat("The metadata ", quoted(key), " is not a string."));
    found[key] = value.get<std::string>();
  }
  return found;
}

std::vector<size_t> HeaderReader::numbers(const std::string& name, const json& entry, const char* key) const {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array()) fail(concat("Tensor ", quoted(name), " has no list '", key, "'."));
  std::vector<size_t> found;
  for (const json& item : *list) {
    constexpr size_t largest = std::numeric_limits<int64_t>::max();
    if (!item.is_number_unsigned() || item.get<size_t>() > largest) {
      fail(concat("Tensor ", quoted(name), " has a ", key, " that is not of whole numbers of 0 or more."));
    }
    found.push_back(item.get<size_t>());
  }
  return found;
}

TensorView HeaderReader::tensor(const std::string& name, const json& entry) const {
  const auto type = entry.is_object() ? entry.find("dtype") : entry.end();
  if (type == entry.end() || !type->is_string()) fail(concat("Tensor ", quoted(name), " has no dtype."));
  const std::optional<Dtype> dtype = find_dtype(type->get<std::string>());
  if (!dtype) {
    throw DataError(where_, concat("Tensor ", quoted(name), " has dtype ", quoted(*type),
                                   ", expected F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL."));
  }
  const auto extents = numbers(name, entry, "shape");
  const auto offsets = numbers(name, entry, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size()) {
    fail(concat("Tensor ", quoted(name), " has data_offsets outside of the ", data_.size(), " bytes of data."));
  }
  TensorView view{.name = name,
                  .dtype = *dtype,
                  .shape = {extents.begin(), extents.end()},
                  .data = data_.data() + offsets[0],
                  .bytes = offsets[1] - offsets[0]};
  if (tensor_bytes(view.dtype, view.shape) != view.bytes) {
    fail(concat("Tensor ", quoted(name), " has ", view.bytes, " bytes, which its shape and dtype do not give."));
  }
  return view;
}

void HeaderReader::check_coverage(const std::vector<TensorView>& tensors) const {
  std::vector<const TensorView*> in_order;
  for (const TensorView& view : tensors) in_order.push_back(&view);
  std::sort(in_order.begin(), in_order.end(), [](const TensorView* a, const TensorView* b) {
    return std::pair(a->data, a->bytes) < std::pair(b->data, b->bytes);
  });
  const std::byte* reached = data_.data();
  for (const TensorView* view : in_order) {
    if (view->data < reached) fail(concat("Tensor ", quoted(view->name), " overlaps another."));
    if (view->data > reached) fail(concat("There is a hole in the data before tensor ", quoted(view->name), "."));
    reached += view->bytes;
  }
  const auto rest = data_.data() + data_.size() - reached;
  if (rest > 0) fail(concat("The last ", rest, " bytes belong to no tensor."));
}

std::vector<TensorView> HeaderReader::tensors(const json& header) const {
  std::vector<TensorView> found;
  for (const auto& [name, entry] : header.items()) {
    if (name != safetensors_metadata_key) found.push_back(tensor(name, entry));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  check_coverage(found);
  return found;
}

}  // namespace

std::optional<size_t> tensor_bytes(Dtype dtype, const std::vector<int64_t>& shape) {
  size_t bytes = dtype_size(dtype);
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes)) return std::nullopt;
  }
  return bytes;
}

SafetensorsHeader parse_safetensors_header(const std::string& where, std::string_view text,
                                           std::span<const std::byte> data) {
  const HeaderReader reader(where, data);
  const json header = reader.parse(text);
  return {.metadata = reader.metadata(header), .tensors = reader.tensors(header)};
}

}  // namespace normlab
