// What the checks of language models and of translators share.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "normlab/infer/verify.h"
#include "normlab/record/safetensors.h"
#include "normlab/train/stepper.h"

namespace normlab {

// Largest relative errors allowed. Ten steps of Adam turn the last bits of small gradients into whole steps of lr,
// hence the wider bound on the weights after them.
constexpr double logits_bound = 2e-5, gradient_bound = 2e-4, losses_bound = 1e-4, after_bound = 2e-3;

// The largest difference over the largest expected entry, of tensors of one size.
double relative_error(const torch::Tensor& got, const torch::Tensor& expected);
// DataError when the file expects another size than ours.
Check compare_tensors(const SafetensorsFile& file, const std::string& name, const torch::Tensor& got,
                      const torch::Tensor& expected, double bound);

// A matrix of whole numbers from 0 to n - 1; DataError when it is anything else.
torch::Tensor load_ids(const SafetensorsFile& file, const std::string& key, int64_t n);

std::string reference_metadata(const SafetensorsFile& file, const std::string& key);

// The losses of the reference's optimiser steps on one batch. The stepper has a copy of the model, which shares its
// tensors: these are the trained ones afterwards.
template <class Model, class ModelBatch>
torch::Tensor losses_of_steps(const SafetensorsFile& file, const Model& model, const ModelBatch& batch,
                              const Pass& pass) {
  const nlohmann::json optim = nlohmann::json::parse(reference_metadata(file, "optimizer"), nullptr, false);
  BasicStepper<Model, ModelBatch> stepper(model, AdamWSettings{.beta1 = optim.at("betas").at(0),
                                                               .beta2 = optim.at("betas").at(1),
                                                               .eps = optim.at("eps"),
                                                               .weight_decay = optim.at("weight_decay")});
  constexpr int most_steps = 1000;  // a reference has ten
  std::vector<float> losses;
  for (int step = 0; step < std::min(most_steps, optim.at("steps").get<int>()); ++step)
    losses.push_back(static_cast<float>(stepper.step({batch}, pass, optim.at("lr"), optim.at("clip_grad_norm")).loss));
  return torch::tensor(losses);
}

std::vector<Check> verify_translator(const SafetensorsFile& file, const std::string& kernels, const StopToken& stop);

}  // namespace normlab
