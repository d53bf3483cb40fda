// What the machine is measured to do at most: multiply-adds in float, and reading of memory. Utilisations are shares of
// these.
#pragma once

#include <cstddef>

namespace normlab {

// Floating-point operations/s (a multiply-add counts as two) of `threads` threads at once, each in registers
// only, on the best instruction set of the processor, kept up for `seconds`.
double measured_peak(int threads, double seconds);

// Bytes/s that `threads` threads read at once, each a buffer of its own of `bytes`, again and again for `seconds`: the
// fastest of the readings.
double measured_read_bandwidth(int threads, size_t bytes, double seconds);

}  // namespace normlab
