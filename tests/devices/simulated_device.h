// A device for tests: torch's PrivateUse1, whose memory the host can neither read nor write, and whose operators run on
// the CPU. Host code that touches a tensor of it dies of SIGSEGV, as it would with a GPU. Linking it registers it.
#pragma once

#include <cstdint>

namespace normlab {

constexpr const char* simulated_device = "privateuseone:0";

// How often the host has waited for a value of the device: tensors copied to the CPU, and item(). What an operator
// copies for itself does not count.
int64_t reads_by_host();

}  // namespace normlab
