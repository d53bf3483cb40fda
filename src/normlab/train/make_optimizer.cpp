#include "normlab/train/make_optimizer.h"

namespace normlab {

OptimizerSettings optimizer_settings(const OptimConfig& optim) {
  if (optim.optimizer == OptimizerKind::muon) return muon_settings(optim);
  return adamw_settings(optim);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, std::vector<Parameter> parameters,
                                          bool fused) {
  if (const auto* muon = std::get_if<MuonSettings>(&settings)) {
    MuonSettings own = *muon;
    own.adamw.fused = fused;
    return std::make_unique<Muon>(parameters, own);
  }
  AdamWSettings own = std::get<AdamWSettings>(settings);
  own.fused = fused;
  return std::make_unique<AdamW>(std::move(parameters), own);
}

}  // namespace normlab
