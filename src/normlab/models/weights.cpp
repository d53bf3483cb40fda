#include "normlab/models/weights.h"

#include <cstring>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using torch::Tensor;

struct DtypeRow {
  Dtype file;
  torch::ScalarType torch;
};
constexpr DtypeRow dtypes[] = {
    {Dtype::f64, torch::kFloat64},   {Dtype::f32, torch::kFloat32}, {Dtype::f16, torch::kFloat16},
    {Dtype::bf16, torch::kBFloat16}, {Dtype::i64, torch::kInt64},   {Dtype::i32, torch::kInt32},
    {Dtype::i16, torch::kInt16},     {Dtype::i8, torch::kInt8},     {Dtype::u8, torch::kUInt8},
    {Dtype::boolean, torch::kBool},
};

Dtype file_dtype(const Tensor& tensor) {
  for (const DtypeRow& row : dtypes)
    if (row.torch == tensor.scalar_type()) return row.file;
  throw Error("safetensors", concat("cannot store tensors of type ", c10::toString(tensor.scalar_type()), "."));
}

torch::ScalarType torch_dtype(Dtype dtype) {
  for (const DtypeRow& row : dtypes)
    if (row.file == dtype) return row.torch;
  return torch::kFloat32;
}

// Of a contiguous tensor in memory.
TensorView view_of(const std::string& name, const Tensor& flat) {
  return {.name = name,
          .dtype = file_dtype(flat),
          .shape = flat.sizes().vec(),
          .data = static_cast<const std::byte*>(flat.const_data_ptr()),
          .bytes = flat.nbytes()};
}

}  // namespace

void save_tensors(const std::filesystem::path& path, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<Tensor> held;
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    held.push_back(tensor.detach().cpu().contiguous());
    views.push_back(view_of(name, held.back()));
  }
  write_safetensors(path, views, metadata);
}

Tensor load_tensor(const TensorView& view) {
  const Tensor tensor = torch::empty(view.shape, torch_dtype(view.dtype));
  if (view.bytes > 0) std::memcpy(tensor.mutable_data_ptr(), view.data, view.bytes);
  return tensor;
}

void load_tensors(const std::filesystem::path& path, const NamedTensors& into) {
  const SafetensorsFile file(path);
  torch::NoGradGuard no_grad;
  if (file.tensors().size() != into.size())
    throw DataError(path.string(), concat("has ", file.tensors().size(), " tensors, expected ", into.size(),
                                          ": it belongs to another model."));
  // Everything is checked before anything is changed.
  for (const auto& [name, tensor] : into) {
    const TensorView& view = file.at(name);
    if (!tensor.defined()) continue;
    if (tensor.sizes() != torch::IntArrayRef(view.shape) || torch_dtype(view.dtype) != tensor.scalar_type())
      throw DataError(path.string(),
                      concat("tensor '", name, "' is ", c10::str(torch_dtype(view.dtype), view.shape), ", expected ",
                             c10::str(tensor.scalar_type(), tensor.sizes()), ": it belongs to another model."));
  }
  for (const auto& [name, tensor] : into) {
    if (!tensor.defined()) continue;
    const TensorView& view = file.at(name);
    if (tensor.is_contiguous() && tensor.is_cpu() && view.bytes > 0)
      std::memcpy(tensor.mutable_data_ptr(), view.data, view.bytes);
    else
      tensor.copy_(load_tensor(view));
    release_pages(view);
  }
}

void require_finite(const std::filesystem::path& path, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point()) continue;
    const Tensor flat = tensor.detach().cpu().contiguous();
    const size_t bad = count_nonfinite(view_of(name, flat));
    if (bad > 0)
      throw DataError(path.string(), concat("tensor '", name, "' has ", bad, " of ", tensor.numel(),
                                            " values that are NaN or infinite. Use another checkpoint, or "
                                            "--allow-nonfinite to use this one as it is."));
  }
}

}  // namespace normlab
