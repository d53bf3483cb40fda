// What the fuzzers share. An Error is the right answer to bad input; everything else that ends a call is a finding.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

inline std::string text_of(const uint8_t* bytes, size_t size) { return {reinterpret_cast<const char*>(bytes), size}; }

// The parts of an input that stands for several files, separated by lines of "%%"; missing ones are empty.
inline std::vector<std::string> parts_of(const uint8_t* bytes, size_t size, size_t count) {
  constexpr std::string_view separator = "%%\n";
  std::vector<std::string> parts;
  std::string rest = text_of(bytes, size);
  for (size_t end; parts.size() + 1 < count && (end = rest.find(separator)) != std::string::npos;) {
    parts.push_back(rest.substr(0, end));
    rest.erase(0, end + separator.size());
  }
  parts.push_back(std::move(rest));
  parts.resize(count);
  return parts;
}

// A file that exists in memory only.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(::memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ::write(descriptor_, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::filesystem::path path() const { return concat("/proc/self/fd/", descriptor_); }

 private:
  int descriptor_;
};

// Ends the fuzzer with its input as the finding.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "broken property: %s\n", property);
  std::abort();
}

// True when the body returns, false when it refuses its input.
template <class Body>
bool accepts(Body body) {
  try {
    body();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace normlab
