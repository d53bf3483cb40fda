// The optimiser that a configuration asks for.
#pragma once

#include <memory>
#include <variant>

#include "normlab/train/muon.h"

namespace normlab {

using OptimizerSettings = std::variant<AdamWSettings, MuonSettings>;
OptimizerSettings optimizer_settings(const OptimConfig& optim);

// `fused`: AdamW on our kernel, or on PyTorch's; whatever the settings say of it.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, std::vector<Parameter> parameters,
                                          bool fused);

}  // namespace normlab
