// Muon (Jordan et al. 2024): momentum of the gradient of each linear map, orthogonalised. AdamW updates all other
// parameters: embeddings, head, gains, biases.
//
//   M <- mu M + (1 - mu) G,  U = mu M + (1 - mu) G                                   Nesterov momentum
//   X = U / max(|U|_F, 1e-7),  five times:  A = X X^T,  X <- a X + (b A + c A^2) X   Newton-Schulz
//   W <- (1 - lr lambda) W - lr s X
//   s = sqrt(max(1, rows / cols)), or s = 0.2 sqrt(max(rows, cols))                  original, match_rms_adamw
//
// in the arithmetic of torch.optim.Muon, but with Newton-Schulz in float32 instead of bfloat16. Maps that share a
// matrix, such as q, k and v, are orthogonalised separately. A constraint on the weights is applied after the update.
#pragma once

#include <functional>
#include <vector>

#include "normlab/train/adamw.h"

namespace normlab {

struct MuonSettings {
  double momentum = 0.95, weight_decay = 0.0;
  MuonScale scale = MuonScale::match_rms_adamw;
  AdamWSettings adamw = {};  // of the other parameters
  double adamw_rate = 1.0;   // their learning rate, as a multiple of that of the matrices
};
MuonSettings muon_settings(const OptimConfig& optim);

class Muon : public Optimizer {
 public:
  Muon(const std::vector<Parameter>& parameters, const MuonSettings& settings);

  NamedTensors state() const override;  // the momentum of each matrix, and what AdamW keeps

 private:
  struct Matrix {
    size_t index;  // among all parameters
    Parameter parameter;
    torch::Tensor momentum;
  };
  double make_step(const std::vector<Gradients>& parts, double lr, double clip, DeviceLoss* loss) override;
  void for_matrices(const std::function<void(size_t)>& work) const;
  // The norms of the sums of the matrices' gradients, where they are.
  std::vector<torch::Tensor> add_parts(const std::vector<Gradients>& parts) const;
  double norm_of_sum(const std::vector<Gradients>& parts, const std::vector<Gradients>& others, DeviceLoss* loss) const;
  void update(const Matrix& matrix, torch::Tensor gradient, double lr) const;

  MuonSettings settings_;
  std::vector<Matrix> matrices_;
  std::vector<size_t> largest_first_;  // of matrices_
  std::vector<size_t> others_;         // indices of the parameters that AdamW updates
  AdamW adamw_;
};

// Nearly the orthogonal factor of a matrix: the same singular vectors, singular values between about 0.7 and 1.2.
torch::Tensor newton_schulz(const torch::Tensor& matrix);

}  // namespace normlab
