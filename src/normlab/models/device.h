// Where tensors live: the device that train.device or --device names, and what follows from it.
#pragma once

#include <torch/types.h>

#include <string>

#include "normlab/config/config.h"

namespace normlab {

// `auto` is CUDA where libtorch and the machine have it, else the CPU. UsageError with `where` for a device that is not
// there.
torch::Device find_device(const std::string& name, const std::string& where = "train.device");

// What libtorch finds on this machine: "2 CUDA devices", or why there are none.
std::string describe_cuda();

// Puts the device itself into train.device. Kernels that were chosen for the CPU are chosen again for another device,
// and the other way round.
void settle_device(Config& config, const std::string& wanted, const std::string& where = "train.device");

// int64 in memory of the host, pinned where the device is CUDA.
torch::TensorOptions host_tokens(torch::Device device);

// What the model reads, made by the host: copied without waiting for the copy, which pinned memory allows.
torch::Tensor on_device(const torch::Tensor& made_by_host, torch::Device device);

// float32 on the settled device.
torch::TensorOptions tensor_options(const Config& config);

}  // namespace normlab
