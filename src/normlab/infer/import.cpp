#include "normlab/infer/import.h"

#include <nlohmann/json.hpp>
#include <set>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/models/weights.h"

namespace normlab {
namespace {

using nlohmann::json;
using torch::Tensor;

// First row and number of rows of a part.
std::pair<int64_t, int64_t> rows_of(RowPart part, const ModelConfig& c, int64_t all) {
  const int64_t q = int64_t{c.n_heads} * c.d_head, kv = int64_t{c.n_kv_heads} * c.d_head;
  switch (part) {
    case RowPart::all:
      return {0, all};
    case RowPart::q:
      return {0, q};
    case RowPart::k:
      return {q, kv};
    case RowPart::v:
      return {q + kv, kv};
    case RowPart::up:
      return {0, c.d_ff};
    case RowPart::gate:
      break;
  }
  return {c.d_ff, c.d_ff};
}

// Some rows after others, so that little of the file and of its copy is in memory at once.
void fill_from(const TensorView& view, const Tensor& ours) {
  constexpr int64_t bytes_at_once = 1 << 24;
  const int64_t rows = view.shape.empty() ? 0 : view.shape.front();
  if (rows == 0) return;
  const int64_t row_bytes = static_cast<int64_t>(view.bytes) / rows;
  const int64_t step = std::max<int64_t>(1, bytes_at_once / std::max<int64_t>(1, row_bytes));
  for (int64_t first = 0; first < rows; first += step) {
    TensorView part = view;
    part.shape.front() = std::min(step, rows - first);
    part.data += first * row_bytes;
    part.bytes = static_cast<size_t>(part.shape.front() * row_bytes);
    ours.narrow(0, first, part.shape.front()).copy_(load_tensor(part));
    release_pages(part);
  }
}

}  // namespace

ImportedShape read_shape(const Importer& importer, const std::string& config_json, const std::string& kernels) {
  try {
    ImportedShape shape = importer.shape(config_json);
    FieldList list;
    list_fields(shape.model, list);
    list.at("model.kernels", "import").set(kernels);
    resolve_model(shape.model, shape.norm);
    return shape;
  } catch (const json::exception& error) {
    throw DataError(importer.source, concat("the configuration lacks something (", error.what(), ")."));
  }
}

std::vector<NameMatch> match_names(const Importer& importer, const ImportedShape& shape, DecoderLm& model) {
  std::map<std::string, Tensor> tensors;
  for (auto& [name, tensor] : model.parameters()) tensors.emplace(name, tensor);
  std::vector<NameMatch> matches;
  for (const NameRow& row : importer.names) {
    const bool layered = row.ours.find("{i}") != std::string::npos;
    for (int layer = 0; layer < (layered ? shape.model.n_layers : 1); ++layer) {
      const auto ours = tensors.find(replace_all(row.ours, "{i}", concat(layer)));
      if (ours == tensors.end()) continue;  // a bias the model does not have
      const auto [first, rows] = rows_of(row.part, model.config(), ours->second.size(0));
      matches.push_back(
          {replace_all(row.theirs, "{i}", concat(layer)), ours->first, first, rows, row.transposed, row.plus_one});
    }
  }
  return matches;
}

DecoderLm import_model(const Importer& importer, const ImportedShape& shape, const TensorSource& source,
                       torch::TensorOptions options) {
  DecoderLm model(shape.model, shape.norm, shape.vocab_size, 0, options);
  std::map<std::string, Tensor> tensors;
  for (auto& [name, tensor] : model.parameters()) tensors.emplace(name, tensor);

  torch::NoGradGuard no_grad;
  std::set<std::string> used;
  for (const NameMatch& match : match_names(importer, shape, model)) {
    const TensorView view = source.at(match.theirs);
    const bool transposed = match.transposed && view.shape.size() == 2;
    std::vector<int64_t> sizes = view.shape;
    if (transposed) std::swap(sizes[0], sizes[1]);
    const Tensor ours = tensors.at(match.ours).narrow(0, match.first_row, match.rows);
    if (ours.sizes() != torch::IntArrayRef(sizes))
      throw DataError(source.where, concat("'", match.theirs, "' is ", c10::str(torch::IntArrayRef(sizes)),
                                           ", expected ", c10::str(ours.sizes()), "."));
    fill_from(view, transposed ? ours.t() : ours);
    if (match.plus_one) ours.add_(1.0);
    used.insert(match.theirs);
  }
  for (const std::string& name : source.names)
    if (!used.contains(name)) throw DataError(source.where, concat("tensor '", name, "' has no place in the model."));
  return model;
}

DecoderLm import_model(const Importer& importer, const ImportedShape& shape, const SafetensorsFile& file,
                       const std::string& prefix, torch::TensorOptions options) {
  TensorSource source{.where = file.path().string(), .names = {}, .at = [&](const std::string& name) {
                        return file.at(prefix + name);
                      }};
  for (const TensorView& view : file.tensors())
    if (view.name.starts_with(prefix)) source.names.push_back(view.name.substr(prefix.size()));
  return import_model(importer, shape, source, options);
}

}  // namespace normlab
