// How many threads this process may run at once.
#pragma once

#include <algorithm>
#include <thread>

namespace normlab {

inline int core_count() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

}  // namespace normlab
