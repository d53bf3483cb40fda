// Tokens: the ids of a text, in memory, or in files of which only what is asked for is read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "normlab/base/file.h"

namespace normlab {

// Ids of one, two or four bytes each, the lowest byte first.
struct TokenFile {
  File file;
  size_t width = 2;
  size_t size = 0;  // tokens
};
size_t token_width(int vocab_size);  // bytes that hold every id

class Tokens {
 public:
  Tokens() = default;
  Tokens(std::vector<int32_t> ids) : held_(std::move(ids)), size_(held_.size()) {}
  // The files one after the other; every id is below vocab_size.
  Tokens(std::vector<TokenFile> files, int vocab_size);

  size_t size() const { return size_; }
  // Tokens begin, begin + 1 ... as many as `out` holds. DataError when a file was changed since it was opened.
  void copy(size_t begin, std::span<int32_t> out) const;
  // A window: the inputs, and the targets one further on.
  void copy_window(size_t begin, std::span<int64_t> inputs, std::span<int64_t> targets) const;
  std::vector<int32_t> all() const;

 private:
  void read(const TokenFile& file, size_t begin, std::span<int32_t> out) const;

  std::vector<int32_t> held_;
  std::shared_ptr<const std::vector<TokenFile>> files_;  // null: in memory
  size_t size_ = 0;
  int vocab_size_ = 0;
};

}  // namespace normlab
