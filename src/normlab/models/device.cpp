#include "normlab/models/device.h"

#include <ATen/Context.h>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

int cuda_devices() { return at::detail::getCUDAHooks().hasCUDA() ? at::detail::getCUDAHooks().deviceCount() : 0; }

// Also of a backend that the tests load.
int device_count(c10::DeviceType type) {
  if (type == c10::kCUDA) return cuda_devices();
  return type == c10::kPrivateUse1 && at::isPrivateUse1HooksRegistered() ? 1 : 0;
}

}  // namespace

std::string describe_cuda() {
  if (!at::detail::getCUDAHooks().hasCUDART()) return "none: this libtorch is without CUDA";
  const int count = cuda_devices();
  return count == 0 ? "none: libtorch has CUDA, but finds no device"
                    : concat(count, count == 1 ? " device" : " devices");
}

torch::Device find_device(const std::string& name, const std::string& where) {
  if (name == "auto") return cuda_devices() > 0 ? torch::Device(c10::kCUDA, 0) : torch::Device(c10::kCPU);
  if (name == "cpu") return c10::kCPU;
  std::optional<torch::Device> device;
  try {
    device = torch::Device(name);
  } catch (const c10::Error&) {
    throw UsageError(where, concat("got '", name, "', expected auto, cpu, cuda or cuda:N."));
  }
  const int count = device_count(device->type()), index = device->has_index() ? device->index() : 0;
  if (index < count) return {device->type(), static_cast<c10::DeviceIndex>(index)};
  if (count > 0)
    throw UsageError(where, concat("got '", name, "', but there are only ", count, " such devices, counted from 0."));
  throw UsageError(where, concat("got '", name, "', but there is no such device here (CUDA: ", describe_cuda(),
                                 "). Use cpu; docs/devices.md says what CUDA needs."));
}

void settle_device(Config& config, const std::string& wanted, const std::string& where) {
  const bool was_cpu = is_cpu(config.train.device);
  config.train.device = find_device(wanted, where).str();
  if (was_cpu == is_cpu(config.train.device)) return;
  config.model.kernels = Kernels::best;
  resolve_model(config);
}

torch::TensorOptions host_tokens(torch::Device device) {
  return torch::TensorOptions(torch::kInt64).pinned_memory(device.is_cuda());
}

torch::Tensor on_device(const torch::Tensor& made_by_host, torch::Device device) {
  return made_by_host.device() == device ? made_by_host : made_by_host.to(device, /*non_blocking=*/true);
}

torch::TensorOptions tensor_options(const Config& config) {
  return torch::TensorOptions(torch::kFloat32).device(find_device(config.train.device));
}

}  // namespace normlab
