// Windows are read, not mapped: a file that shrinks becomes an error instead of a fault, and what was read once does
// not count as memory of the process.
#include "normlab/data/tokens.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {

size_t token_width(int vocab_size) { return vocab_size <= 1 << 8 ? 1 : vocab_size <= 1 << 16 ? 2 : 4; }

Tokens::Tokens(std::vector<TokenFile> files, int vocab_size) : vocab_size_(vocab_size) {
  for (const TokenFile& each : files) size_ += each.size;
  files_ = std::make_shared<const std::vector<TokenFile>>(std::move(files));
}

void Tokens::read(const TokenFile& file, size_t begin, std::span<int32_t> out) const {
  std::vector<unsigned char> bytes(out.size() * file.width);
  for (size_t done = 0; done < bytes.size();) {
    const auto offset = static_cast<off_t>(begin * file.width + done);
    const ssize_t count = ::pread(file.file.descriptor(), bytes.data() + done, bytes.size() - done, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno(file.file.path(), "read the file");
    if (count == 0) throw DataError(file.file.path().string(), "was shortened while it was in use.");
    done += static_cast<size_t>(count);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t id = 0;
    for (size_t byte = 0; byte < file.width; ++byte) id |= uint32_t{bytes[i * file.width + byte]} << (8 * byte);
    if (id >= static_cast<uint32_t>(vocab_size_))
      throw DataError(file.file.path().string(), concat("was changed while it was in use; got token ", id,
                                                        ", expected 0 to ", vocab_size_ - 1, "."));
    out[i] = static_cast<int32_t>(id);
  }
}

void Tokens::copy(size_t begin, std::span<int32_t> out) const {
  if (begin > size_ || out.size() > size_ - begin)
    throw Error("tokens", concat("asked for tokens up to ", begin + out.size(), " of ", size_, "."));
  if (!files_) {
    std::copy_n(held_.begin() + static_cast<ptrdiff_t>(begin), out.size(), out.begin());
    return;
  }
  for (const TokenFile& file : *files_) {
    if (out.empty()) return;
    if (begin < file.size) {
      const size_t count = std::min(out.size(), file.size - begin);
      read(file, begin, out.first(count));
      out = out.subspan(count);
      begin = 0;
    } else {
      begin -= file.size;
    }
  }
}

void Tokens::copy_window(size_t begin, std::span<int64_t> inputs, std::span<int64_t> targets) const {
  std::vector<int32_t> window(inputs.size() + 1);
  copy(begin, window);
  std::copy(window.begin(), window.end() - 1, inputs.begin());
  std::copy(window.begin() + 1, window.end(), targets.begin());
}

std::vector<int32_t> Tokens::all() const {
  std::vector<int32_t> ids(size_);
  copy(0, ids);
  return ids;
}

}  // namespace normlab
