// A model as the authors of a scheme build it.
#pragma once

#include "normlab/config/model_config.h"

namespace normlab {

inline ModelConfig with_recommended(ModelConfig config, const NormScheme& scheme) {
  FieldList list;
  list_fields(config, list);
  for (const auto& [key, value] : scheme.recommended)
    if (key.starts_with("model.")) list.at(key, scheme.name).set(value);
  return config;
}

}  // namespace normlab
