#include "normlab/ops/precision.h"

#include <ATen/autocast_mode.h>

namespace normlab {

bool Autocast::is_on(torch::Device device) {
  return at::autocast::is_autocast_available(device.type()) && at::autocast::is_autocast_enabled(device.type());
}

Autocast::Autocast(torch::Device device, bool on)
    : device_(device.type()), on_(on), changed_(at::autocast::is_autocast_available(device_) && is_on(device) != on) {
  if (!changed_) return;
  was_cached_ = at::autocast::is_autocast_cache_enabled();
  was_type_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, on);
  if (!on) return;
  at::autocast::set_autocast_dtype(device_, torch::kBFloat16);
  // A pass reads each weight once; a copy made without gradients must not serve a pass that wants them.
  at::autocast::set_autocast_cache_enabled(false);
}

Autocast::~Autocast() {
  if (!changed_) return;
  at::autocast::set_autocast_enabled(device_, !on_);
  at::autocast::set_autocast_dtype(device_, was_type_);
  at::autocast::set_autocast_cache_enabled(was_cached_);
}

torch::Tensor widened(const torch::Tensor& x) {
  return x.defined() && c10::elementSize(x.scalar_type()) < 4 ? x.to(torch::kFloat32) : x;
}

}  // namespace normlab
