// Reads NORMLAB_ISA and asks Highway for the processor's best instruction set.
#include "normlab/kernels/isa.h"

#include <hwy/targets.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "normlab/base/error.h"

namespace normlab {
namespace {

std::string isa_setting() {
  const char* value = std::getenv("NORMLAB_ISA");
  return value ? value : "";
}

int64_t best_target() {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return supported & -supported;  // better targets have lower bits
}

}  // namespace

bool scalar_kernels() noexcept {
  // Kept: the processor is asked by an instruction that costs microseconds on a virtual machine.
  static const bool scalar = isa_setting() == "scalar" || best_target() == HWY_SCALAR;
  return scalar;
}

std::string_view isa_name() noexcept {
  if (scalar_kernels()) return "scalar";
  return hwy::TargetName(best_target());
}

void check_isa_setting() {
  const std::string setting = isa_setting();
  if (setting.empty() || setting == "scalar") return;
  throw UsageError("NORMLAB_ISA",
                   "unknown instruction set; got '" + setting +
                       "', expected 'scalar' or nothing. Unset it to use the best set of this processor.");
}

}  // namespace normlab
