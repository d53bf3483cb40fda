// System calls of the code under test that a test can watch or make fail (defined in base/durability_test.cpp).
#pragma once

#include <functional>
#include <utility>

namespace normlab {

// Called instead of fsync; returns 0, or -1 with errno set. Nothing: the system's own.
extern std::function<int(int descriptor)> on_fsync;
// Called once, before the next flock.
extern std::function<void()> before_flock;

// Sets a hook for a scope.
template <class Hook>
class ScopedHook {
 public:
  template <class Body>
  ScopedHook(Hook& hook, Body body) : hook_(hook) {
    hook = std::move(body);
  }
  ~ScopedHook() { hook_ = nullptr; }
  ScopedHook(const ScopedHook&) = delete;
  ScopedHook& operator=(const ScopedHook&) = delete;

 private:
  Hook& hook_;
};

}  // namespace normlab
