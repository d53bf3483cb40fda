#include "normlab/data/large_text.h"

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/memory.h"
#include "normlab/base/prose.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"
#include "normlab/data/text_parts.h"
#include "normlab/data/token_cache.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* tokens_name = "tokens.bin";

// "tokenising my.txt: 35 % of 10.0 GB, 28.0 MB/s, 4 min left"
class TokenisingProgress {
 public:
  TokenisingProgress(const char* work, const fs::path& path, const TextForm& form)
      : work_(concat(work, " ", path.string())), size_(static_cast<double>(fs::file_size(path))), stop_(form.stop) {}
  void operator()(int64_t bytes_read) {
    const auto done = static_cast<double>(bytes_read);
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    line_.update(concat(work_, ": ", static_cast<int>(100.0 * done / size_), " % of ", size_text(size_), ", ",
                        size_text(done / seconds), "/s, ", spoken_time((size_ - done) * seconds / done), " left"));
    if (stop_()) throw Error(work_, "stopped by a signal; nothing was written.", Exit::stopped);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string work_;
  double size_;
  StopToken stop_;
  Clock::time_point start_ = Clock::now();
  ProgressLine line_;
};

// The vocabulary of characters, in a pass of its own.
Tokenizer vocabulary_of(const fs::path& path, const TextForm& form) {
  TokenisingProgress progress("characters of", path, form);
  TextReader reader(path, form);
  TextParts parts(reader, cut_between_characters);
  CharacterSet characters;
  bool empty = true;
  for (TextParts::Part part; parts.next(part);) {
    require_text(part.text, part.where, TokenizerKind::characters, /*given=*/false);
    characters.add(part.text);
    empty = false;
    progress(reader.bytes_read());
  }
  if (empty) throw DataError(path.string(), "is empty; expected text.");
  return characters.tokenizer(path.string());
}

// One byte is one token: the file itself is a file of tokens.
bool is_its_own_tokens(const fs::path& path, std::string_view kind, const Tokenizer* known, const TextForm& form) {
  const std::string_view of = known ? known->kind_name() : kind;
  return of == tokenizer_kinds[static_cast<int>(TokenizerKind::bytes)] && !is_jsonl(path, form);
}

// Writes tokens.bin and returns what else is to be known.
json tokenise(const fs::path& path, const fs::path& folder, std::string_view kind, const Tokenizer* known,
              const TextForm& form) {
  if (is_its_own_tokens(path, kind, known, form))
    return {{"tokens", fs::file_size(path)}, {"width", 1}, {"sha256", sha256_file(path)}};
  const json identity = identity_of(path);
  const bool characters = !known && kind == tokenizer_kinds[static_cast<int>(TokenizerKind::characters)];
  const Tokenizer tokenizer = known ? *known : characters ? vocabulary_of(path, form) : Tokenizer::make(kind, "");
  const size_t width = token_width(tokenizer.vocab_size());
  TextReader reader(path, form);
  File out = File::create(folder / tokens_name, folder / tokens_name);
  TokenisingProgress progress("tokenising", path, form);
  int64_t count = 0;
  TextParts parts(reader, cut_for(tokenizer));
  const auto pack = [&](const TextParts::Part& part, BpeModel::Cache& cache) {
    require_text(part.text, part.where, tokenizer.kind(), known != nullptr);
    std::string packed;
    for (const int32_t token : encode_part(tokenizer, part, cache))
      for (size_t byte = 0; byte < width; ++byte)
        packed += static_cast<char>(static_cast<uint32_t>(token) >> (8 * byte));
    return packed;
  };
  const auto write = [&](std::string_view packed) {
    out.write(packed);
    count += static_cast<int64_t>(packed.size() / width);
  };
  work_on_parts(parts, {.make = pack, .take = write, .watch = std::ref(progress)});
  if (count == 0) throw DataError(path.string(), "is empty; expected text.");
  if (identity_of(path) != identity) throw DataError(path.string(), "was changed while it was read.");
  json facts = {{"tokens", count}, {"width", width}, {"sha256", reader.sha256()}};
  if (characters) facts["tokenizer"] = tokenizer.to_json();
  return facts;
}

}  // namespace

Corpus load_large_text(const fs::path& path, std::string_view kind, const Tokenizer* known, const TextForm& form) {
  const bool jsonl = is_jsonl(path, form);
  const json key = {{"form", "tokens, 1"},
                    {"source", identity_of(path)},
                    {"field", jsonl ? form.field : ""},
                    {"separator", jsonl ? form.separator : ""},
                    {"tokenizer", known ? sha256_hex(known->to_json().dump()) : std::string(kind)}};
  const CacheEntry entry =
      cached({.source = path,
              .key = key,
              .make = [&](const fs::path& folder) { return tokenise(path, folder, kind, known, form); },
              .stop = form.stop});
  const json& facts = entry.facts;
  const Tokenizer tokenizer = known                         ? *known
                              : facts.contains("tokenizer") ? Tokenizer::from_json(facts["tokenizer"])
                                                            : Tokenizer::make(kind, "");
  std::vector<TokenFile> files;
  const fs::path file = is_its_own_tokens(path, kind, known, form) ? path : entry.folder / tokens_name;
  files.push_back({File::open_to_read(file), facts.at("width"), facts.at("tokens")});
  return {
      .tokenizer = tokenizer, .tokens = Tokens(std::move(files), tokenizer.vocab_size()), .sha256 = facts.at("sha256")};
}

}  // namespace normlab
