// A row of the catalogue as JSON: fields as text, as a configuration would set them.
#pragma once

#include <nlohmann/json.hpp>

#include "normlab/norm/scheme.h"

namespace normlab {

inline nlohmann::ordered_json scheme_json(const NormScheme& row) {
  nlohmann::ordered_json out = {
      {"name", row.name}, {"title", row.title}, {"equation", row.equation}, {"source", row.source}};
  NormScheme copy = row;
  FieldList list;
  list_fields(copy, list);
  for (const Field& field : list.fields()) out["fields"][field.key] = field.get();
  out["recommended"] = nlohmann::ordered_json::object();
  for (const auto& [key, value] : row.recommended) out["recommended"][key] = value;
  return out;
}

}  // namespace normlab
