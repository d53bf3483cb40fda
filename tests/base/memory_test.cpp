// Out of memory: how much was wanted, and for what.
#include "normlab/base/memory.h"

#include <gmock/gmock.h>

#include <new>

#include "normlab/base/error.h"

namespace normlab {
namespace {

template <class Failure>
std::string message_of(const Failure& failure) {
  try {
    with_memory_for("a step", [&] { throw failure; });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Memory, SaysHowMuchAndForWhat) {
  const std::runtime_error of_torch(
      "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
      "3221225472 bytes. Error code 12 (Cannot allocate memory)");
  EXPECT_THAT(message_of(of_torch),
              testing::StartsWith("[memory] out of memory: 3.22 GB more were wanted for a step."));
  EXPECT_THAT(message_of(std::bad_alloc()), testing::StartsWith("[memory] out of memory: more was wanted for a step."));
}

TEST(Memory, OtherErrorsAreLeftAlone) {
  EXPECT_THROW(with_memory_for("a step", [] { throw std::runtime_error("shape"); }), std::runtime_error);
  EXPECT_EQ(with_memory_for("a step", [] { return 7; }), 7);
}

TEST(Memory, SizesAreReadable) {
  EXPECT_EQ(size_text(512), "512 B");
  EXPECT_EQ(size_text(1.5e9), "1.50 GB");
}

}  // namespace
}  // namespace normlab
