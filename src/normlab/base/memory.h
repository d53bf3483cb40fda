// Out of memory, in words: how much was wanted, and for what.
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

inline std::string size_text(double bytes) {  // "1.50 GB"
  const std::string number = si(bytes);
  const bool has_prefix = number.back() > '9';
  return has_prefix ? concat(number.substr(0, number.size() - 1), " ", number.back(), "B") : number + " B";
}

// What an allocation of libtorch asked for, which it tells in its message only.
inline std::optional<long long> bytes_refused(std::string_view message) {
  constexpr std::string_view before = "you tried to allocate ", after = " bytes";
  const size_t start = message.find(before);
  if (start == std::string_view::npos) return std::nullopt;
  const size_t first = start + before.size(), end = message.find(after, first);
  return end == std::string_view::npos ? std::nullopt : parse_integer(message.substr(first, end - first));
}

// Throws an Error when this one says that memory ran out.
inline void explain_out_of_memory(const std::exception& error, const std::string& purpose) {
  const auto bytes = bytes_refused(error.what());
  if (!bytes && !dynamic_cast<const std::bad_alloc*>(&error)) return;
  throw Error("memory",
              concat("out of memory: ", bytes ? size_text(static_cast<double>(*bytes)) + " more were" : "more was",
                     " wanted for ", purpose,
                     ". Use a smaller model, train.batch_size or text, or a machine with more memory."));
}

// Runs `work`, which needs memory for `purpose`: "a training step (train.batch_size = 64)".
template <class Work>
auto with_memory_for(const std::string& purpose, Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception& error) {
    explain_out_of_memory(error, purpose);
    throw;
  }
}

}  // namespace normlab
