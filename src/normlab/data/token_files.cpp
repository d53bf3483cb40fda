#include "normlab/data/token_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/data/token_cache.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr size_t id_bytes = 2;

// One file, or the two of a folder.
std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  return {path / "train.bin", path / "val.bin"};
}

int64_t size_of(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (!fs::exists(status)) throw DataError(path.string(), "no such file; expected train.bin and val.bin.");
  if (!fs::is_regular_file(status)) throw DataError(path.string(), "is not a regular file; expected token ids.");
  const auto size = static_cast<int64_t>(fs::file_size(path));
  if (size == 0) throw DataError(path.string(), "is empty; expected token ids of two bytes each.");
  if (size % static_cast<int64_t>(id_bytes) != 0)
    throw DataError(path.string(), concat("has ", size,
                                          " bytes, an odd number; expected token ids of two bytes each, as "
                                          "nanoGPT writes them. It is cut off, or something else."));
  return size;
}

struct Scan {
  int largest = 0;
  std::string sha256;
};

Scan scan(const fs::path& path, int64_t most, const StopToken& stop) {
  File file = File::open_to_read(path);
  std::vector<char> buffer(1 << 20);
  Sha256 sum;
  Scan out;
  for (int64_t left = most; left > 0;) {
    size_t count = 0, got = 1;  // whole ids, whatever the system hands out at a time
    while (got > 0 && count < buffer.size()) count += got = file.read(buffer.data() + count, buffer.size() - count);
    if (count == 0) break;
    sum.add({buffer.data(), count});
    for (size_t i = 0; i + 1 < count; i += id_bytes)
      out.largest = std::max(out.largest, static_cast<uint8_t>(buffer[i]) | static_cast<uint8_t>(buffer[i + 1]) << 8);
    left -= static_cast<int64_t>(count);
    if (stop()) throw Error(path.string(), "stopped by a signal before it was read.", Exit::stopped);
  }
  out.sha256 = sum.hex();
  return out;
}

// Of a large file, what was found is kept.
Scan scan_once(const fs::path& path, const TextForm& form) {
  if (size_of(path) <= form.in_memory) return scan(path, INT64_MAX, form.stop);
  const nlohmann::json key = {{"form", "token ids, 1"}, {"source", identity_of(path)}};
  const CacheEntry entry = cached({.source = path,
                                   .key = key,
                                   .make =
                                       [&](const fs::path&) {
                                         const Scan made = scan(path, INT64_MAX, form.stop);
                                         return nlohmann::json{{"largest", made.largest}, {"sha256", made.sha256}};
                                       },
                                   .stop = form.stop});
  return {entry.facts.at("largest"), entry.facts.at("sha256")};
}

}  // namespace

bool is_token_source(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? fs::exists(path / "train.bin", ignored) : path.extension() == ".bin";
}

TokenFacts look_at_tokens(const fs::path& path, const TextForm& form, int64_t most) {
  TokenFacts facts;
  const std::vector<fs::path> files = files_of(path);
  std::string sums;
  for (const fs::path& file : files) {
    const int64_t size = size_of(file);
    (file.filename() == "val.bin" && files.size() > 1 ? facts.held_out : facts.train) =
        size / static_cast<int64_t>(id_bytes);
    const Scan found = size <= most ? scan_once(file, form) : scan(file, most, form.stop);
    facts.bytes_looked_at += std::min(size, most);
    facts.largest = std::max(facts.largest, found.largest);
    sums += found.sha256;
  }
  facts.sha256 = files.size() == 1 ? sums : sha256_hex(sums);
  return facts;
}

Tokenizer tokenizer_of_ids(const fs::path& path, const TokenFacts& facts, const TextForm& form,
                           const Tokenizer* known) {
  const int vocab_size = known ? known->vocab_size() : form.vocab_size > 0 ? form.vocab_size : facts.largest + 1;
  if (facts.largest >= vocab_size)
    throw DataError(path.string(), concat("has the token ", facts.largest, "; the vocabulary has ", vocab_size,
                                          " tokens. Give the tokenizer that the file was made with."));
  return known ? *known : Tokenizer::of_ids(vocab_size);
}

Tokens open_tokens(const fs::path& path, int vocab_size) {
  std::vector<TokenFile> parts;
  for (const fs::path& file : files_of(path))
    parts.push_back({File::open_to_read(file), id_bytes, static_cast<size_t>(size_of(file)) / id_bytes});
  return {std::move(parts), vocab_size};
}

}  // namespace normlab
