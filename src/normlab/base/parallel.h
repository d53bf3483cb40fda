// Independent pieces of work spread over the cores; each writes only to its own place, so threads change no result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "normlab/base/cores.h"

namespace normlab {

// work(i) for every i below `count`; the first exception is thrown on when all threads have ended.
template <class Work>
void for_each_index(size_t count, const Work& work) {
  const size_t n_threads = std::min(static_cast<size_t>(core_count()), std::max<size_t>(1, count));
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(n_threads);
  const auto run = [&](size_t thread) {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      failures[thread] = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> threads;
  for (size_t thread = 1; thread < n_threads; ++thread) threads.emplace_back(run, thread);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace normlab
