// Memory of large pages where the system has them: reading through many small ones waits for their addresses.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace normlab {

using LargePages = std::shared_ptr<float>;

inline LargePages in_large_pages(size_t bytes) {
  constexpr size_t page = size_t{2} << 20;
  const size_t whole = (bytes + page - 1) / page * page;
  void* memory = std::aligned_alloc(page, whole);
  if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(memory, whole, MADV_HUGEPAGE);  // a wish
#endif
  return {static_cast<float*>(memory), [](float* p) { std::free(p); }};
}

}  // namespace normlab
