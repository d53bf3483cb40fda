#include "normlab/data/text_parts.h"

#include <algorithm>
#include <atomic>
#include <future>

#include "normlab/base/cores.h"
#include "normlab/base/parallel.h"
#include "normlab/base/text.h"
#include "normlab/data/subword_tokenizer.h"

namespace normlab {
namespace {

constexpr size_t part_bytes = 1 << 20;
constexpr size_t parts_per_thread = 4;  // in one round, so that threads end it together

std::vector<TextParts::Part> next_round(TextParts& parts, size_t count) {
  std::vector<TextParts::Part> round;
  for (TextParts::Part part; round.size() < count && parts.next(part);) round.push_back(std::move(part));
  return round;
}

}  // namespace

size_t cut_between_characters(std::string_view text) {
  if (text.empty()) return 0;
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

size_t cut_after_line(std::string_view text) { return text.rfind('\n') + 1; }  // npos + 1 is 0

FindCut cut_for(const Tokenizer& tokenizer) {
  const SubwordTokenizer* subwords = tokenizer.subwords();
  if (!subwords) return cut_between_characters;
  return [subwords](std::string_view text) -> size_t {
    for (size_t at = text.rfind('\n'); at != text.npos && at > 0; at = text.rfind('\n', at - 1))
      if (subwords->can_cut(text, at + 1)) return at + 1;
    return 0;
  };
}

std::string TextParts::place() const {
  if (offset_ == 0) return reader_.name();
  return reader_.jsonl() ? concat(reader_.name(), " from line ", lines_ + 1)
                         : concat(reader_.name(), " from byte ", offset_);
}

bool TextParts::next(Part& part) {
  size_t cut = 0;
  int64_t lines = lines_;
  // Twice as much is read where there is no cut.
  for (; !done_ && cut == 0; cut = done_ ? 0 : cut_(pending_)) {
    lines = reader_.lines_read();
    const size_t before = pending_.size(), wanted = std::max(part_bytes, before);
    done_ = !reader_.read(pending_, wanted) || pending_.size() - before < wanted;  // less: the text ends here
  }
  if (pending_.empty()) return false;
  if (done_) cut = pending_.size();
  part = {.text = pending_.substr(0, cut), .where = place(), .first = offset_ == 0};
  pending_.erase(0, cut);
  offset_ += static_cast<int64_t>(cut);
  lines_ = lines;
  return true;
}

void work_on_parts(TextParts& parts, const PartWork& work) {
  const auto n_threads = static_cast<size_t>(core_count());
  std::vector<BpeModel::Cache> caches(n_threads);
  const auto read = [&] { return next_round(parts, n_threads * parts_per_thread); };
  for (std::vector<TextParts::Part> round = read(); !round.empty();) {
    auto ahead = std::async(std::launch::async, read);
    std::vector<std::string> made(round.size());
    std::atomic<size_t> next = 0;
    for_each_index(n_threads, [&](size_t thread) {
      for (size_t i = next++; i < round.size(); i = next++) made[i] = work.make(round[i], caches[thread]);
    });
    for (const std::string& each : made) work.take(each);
    round = ahead.get();
    work.watch(parts.bytes_read());
  }
}

std::vector<int32_t> encode_part(const Tokenizer& tokenizer, const TextParts::Part& part, BpeModel::Cache& cache) {
  if (!tokenizer.subwords()) return tokenizer.encode(part.text, part.where);
  const auto position = part.first ? SubwordTokenizer::Part::first : SubwordTokenizer::Part::later;
  return tokenizer.subwords()->encode(part.text, part.where, position, cache);
}

}  // namespace normlab
