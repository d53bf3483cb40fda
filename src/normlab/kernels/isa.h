// The instruction set the kernels run on: the best one of this processor, or the scalar twins when the environment
// says NORMLAB_ISA=scalar.
#pragma once

#include <string_view>

namespace normlab {

// Whether to call the scalar twins: NORMLAB_ISA=scalar (read once), or a processor without vectors.
bool scalar_kernels() noexcept;

// "scalar", or Highway's name of the set in use: "AVX3" (AVX-512), "AVX2", "SSE4" ...
std::string_view isa_name() noexcept;

// Throws UsageError when NORMLAB_ISA holds anything else than "scalar" or nothing. Called once at start-up, because
// a kernel cannot throw.
void check_isa_setting();

}  // namespace normlab
