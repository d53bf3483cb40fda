#include "normlab/kernels/isa.h"

#include <hwy/targets.h>

#include <cstdint>

namespace normlab {

std::string_view isa_name() noexcept {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(supported & -supported);  // better targets have lower bits
}

}  // namespace normlab
