// Thinning of curves to what a screen can show.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace normlab {

// The places, in order, of at most `max_points` values (never fewer than five) that draw the same curve: both ends, the
// lowest and the highest value of every stretch, and a value that is not finite where there is one, so that gaps stay.
std::vector<std::size_t> thin(std::span<const double> values, std::size_t max_points);

}  // namespace normlab
