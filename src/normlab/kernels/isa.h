// The instruction set the kernels run on: the best one of this processor.
#pragma once

#include <string_view>

namespace normlab {

// Highway's name of it: "AVX3" (AVX-512), "AVX2", or "SCALAR" for one lane where a processor has neither.
std::string_view isa_name() noexcept;

}  // namespace normlab
