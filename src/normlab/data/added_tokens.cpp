#include "normlab/data/added_tokens.h"

#include <algorithm>
#include <functional>

#include "normlab/data/unicode.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

// Unicode's property White_Space: of what Python calls white space, all but the four separators of ASCII.
bool is_white_space(char32_t c) { return is_space(c) && !(c >= 0x1C && c <= 0x1F); }

// Where the white space that ends at `end` begins, not before `first`.
size_t space_before(std::string_view text, size_t first, size_t end) {
  while (end > first) {
    size_t begin = end - 1;
    while (begin > first && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
    if (!is_white_space(decode_utf8(text, begin).value)) break;
    end = begin;
  }
  return end;
}

size_t space_after(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const Utf8Item item = decode_utf8(text, begin);
    if (!is_white_space(item.value)) break;
    begin += static_cast<size_t>(item.length);
  }
  return begin;
}

}  // namespace

void AddedTokenFinder::add(const std::string& pattern, const AddedToken& token) {
  if (pattern.empty()) return;
  tokens_.insert_or_assign(pattern, token);
  std::vector<size_t>& lengths = lengths_[static_cast<uint8_t>(pattern[0])];
  lengths.push_back(pattern.size());
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
}

AddedTokenFinder::Found AddedTokenFinder::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin)
    for (const size_t length : lengths_[static_cast<uint8_t>(text[begin])]) {
      if (begin + length > text.size()) continue;
      const auto found = tokens_.find(std::string(text.substr(begin, length)));
      if (found != tokens_.end()) return {begin, length, &found->second};
    }
  return {};
}

std::vector<TextPart> AddedTokenFinder::split(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t done = 0, from = 0;
  while (!tokens_.empty()) {
    const Found found = find(text, from);
    if (!found.token) break;
    const size_t end = found.begin + found.length;
    from = end;  // the search does not skip the white space that a token takes
    const size_t begin =
        found.token->lstrip ? space_before(text, std::min(done, found.begin), found.begin) : found.begin;
    if (done < begin) parts.push_back({text.substr(done, begin - done)});
    done = found.token->rstrip ? space_after(text, end) : end;
    parts.push_back({text.substr(begin, done - begin), found.token->id});
  }
  if (done < text.size()) parts.push_back({text.substr(done)});
  return parts;
}

}  // namespace normlab
