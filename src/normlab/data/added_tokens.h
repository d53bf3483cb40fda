// Added tokens of a tokenizer.json: texts that are one token wherever they stand, found before anything else is split.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace normlab {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool lstrip = false, rstrip = false;  // takes the white space before it, after it
  bool normalized = false;              // looked for in the normalised text
  bool special = false;
};

// A part of a text: an added token, or text between them (id -1).
struct TextPart {
  std::string_view text;
  int32_t id = -1;
};

// Finds the leftmost and, of those, the longest token.
class AddedTokenFinder {
 public:
  void add(const std::string& pattern, const AddedToken& token);  // `pattern`: its content, perhaps normalised
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct Found {
    size_t begin = 0, length = 0;
    const AddedToken* token = nullptr;
  };
  Found find(std::string_view text, size_t from) const;

  std::unordered_map<std::string, AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> lengths_;  // of the tokens that begin with this byte, the longest first
};

}  // namespace normlab
