#include "normlab/data/text_size.h"

#include <algorithm>
#include <numbers>
#include <string>
#include <vector>

#include "normlab/data/utf8.h"

namespace normlab {
namespace {

bool continues_character(int32_t byte) { return (byte & 0xC0) == 0x80; }

// The bytes of each token of the vocabulary.
std::vector<int64_t> token_bytes(const Tokenizer& tokenizer) {
  std::vector<int64_t> bytes;
  for (int32_t token = 0; token < tokenizer.vocab_size(); ++token)
    bytes.push_back(static_cast<int64_t>(tokenizer.bytes_of(token).size()));
  return bytes;
}

// The characters of each token: those that begin in it.
std::vector<double> token_characters(const Tokenizer& tokenizer) {
  std::vector<double> characters;
  for (int32_t token = 0; token < tokenizer.vocab_size(); ++token) {
    const std::string bytes = tokenizer.bytes_of(token);
    characters.push_back(static_cast<double>(bytes.size()) -
                         static_cast<double>(std::count_if(bytes.begin(), bytes.end(), continues_character)));
  }
  return characters;
}

// Of each of `count` byte tokens from `begin` on, how many bytes the character has that it belongs to. A character has
// up to four, so three tokens on either side decide.
std::vector<int> character_lengths(const Tokens& tokens, size_t begin, size_t count) {
  constexpr size_t around = 3;
  const size_t first = begin - std::min(begin, around), end = std::min(tokens.size(), begin + count + around);
  std::vector<int32_t> ids(end - first);
  tokens.copy(first, ids);
  const std::string text(ids.begin(), ids.end());
  size_t at = begin - first;
  while (at > 0 && continues_character(text[at])) --at;
  std::vector<int> lengths(text.size(), 1);
  while (at < text.size()) {
    const int length = decode_utf8(text, at).length;
    std::fill_n(lengths.begin() + static_cast<ptrdiff_t>(at), length, length);
    at += static_cast<size_t>(length);
  }
  lengths.erase(lengths.begin(), lengths.begin() + static_cast<ptrdiff_t>(begin - first));
  return lengths;
}

}  // namespace

double TextSize::bits_per_byte(double loss) const {
  return loss / std::numbers::ln2 * static_cast<double>(tokens) / static_cast<double>(bytes);
}
double TextSize::bits_per_character(double loss) const {
  return loss / std::numbers::ln2 * static_cast<double>(tokens) / characters;
}

TextSize size_of_targets(const Tokenizer& tokenizer, const Tokens& tokens, std::span<const EvalWindow> windows) {
  TextSize size;
  for (const EvalWindow& window : windows) size.tokens += window.length;
  if (tokenizer.kind() == TokenizerKind::ids) return size;
  const bool by_byte = tokenizer.kind() == TokenizerKind::bytes;
  const std::vector<int64_t> bytes = token_bytes(tokenizer);
  const std::vector<double> characters = token_characters(tokenizer);
  std::vector<int32_t> targets;
  for (const EvalWindow& window : windows) {
    const auto begin = static_cast<size_t>(window.begin + 1);
    targets.resize(static_cast<size_t>(window.length));
    tokens.copy(begin, targets);
    const std::vector<int> lengths = by_byte ? character_lengths(tokens, begin, targets.size()) : std::vector<int>();
    for (size_t i = 0; i < targets.size(); ++i) {
      const auto token = static_cast<size_t>(targets[i]);
      size.bytes += bytes[token];
      size.characters += by_byte ? 1.0 / lengths[i] : characters[token];
    }
  }
  return size;
}

}  // namespace normlab
