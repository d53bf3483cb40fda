// The machine's measured peak of fused multiply-adds in float: what every utilisation is a share of.
#pragma once

namespace normlab {

// Floating-point operations/s (a multiply-add counts as two) of `threads` threads at once, each in registers
// only, on the best instruction set of the processor, kept up for `seconds`.
double measured_peak(int threads, double seconds);

}  // namespace normlab
