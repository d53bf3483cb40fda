// How long work is asked to stop: by a question that it puts to its caller between two steps.
#pragma once

#include <functional>

namespace normlab {

// True from the moment of the request on. May be called from any thread.
using StopToken = std::function<bool()>;

inline bool never_stop() { return false; }

}  // namespace normlab
