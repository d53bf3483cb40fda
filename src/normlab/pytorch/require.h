// What the kernels of operators share: checks of what Python passes, which become a ValueError, and autograd inside.
#pragma once

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "normlab/base/fields.h"
#include "normlab/base/text.h"
#include "normlab/norm/attention_form.h"

namespace normlab {

template <class... Parts>
void require(bool condition, const char* where, const Parts&... parts) {
  TORCH_CHECK_VALUE(condition, "[", where, "] ", c10::str(parts...), ".");
}

inline std::string shapes(const std::vector<torch::Tensor>& tensors) {
  std::vector<std::string> list;
  for (const torch::Tensor& each : tensors) list.push_back(c10::str(each.sizes()));
  return join(list, ", ");
}

inline std::string describe(const torch::Tensor& x) { return c10::str(x.scalar_type(), " on ", x.device()); }

inline QkNorm qk_norm_of(const std::string& name, const char* where) {
  const auto names = enum_names<QkNorm>();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<QkNorm>(i);
  require(false, where, "norm must be one of ", join(names, ", "), "; got '", name, "'");
  return QkNorm::none;
}

// Autograd in the kernel of an operator, where PyTorch has switched it off.
class WithAutograd {
  c10::impl::LocalDispatchKeySet keys_ = c10::impl::tls_local_dispatch_key_set();
  c10::impl::ForceDispatchKeyGuard guard_{keys_.included_, keys_.excluded_ - c10::autograd_dispatch_keyset};
  torch::AutoGradMode gradients_{true};
};

}  // namespace normlab
