// Pre-tokenisers of a tokenizer.json: how a text is split into the pieces within which merges happen.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/text_pattern.h"

namespace normlab {

class PreTokenizer {
 public:
  using Emit = std::function<void(std::string_view piece)>;

  PreTokenizer() = default;
  // DataError, with `where`, for a kind that is not supported.
  PreTokenizer(const nlohmann::json& json, const std::string& where);

  // Whether the vocabulary is one of bytes, each written as a character (ByteLevel).
  bool byte_level() const { return byte_level_; }
  bool empty() const { return steps_.empty(); }
  // Where a part of a text stands: at its beginning, after an added token, or cut off from the part before.
  enum class Place { first, later, continued };
  void split(std::string_view text, Place place, const Emit& emit) const { run(0, text, place, emit); }

  // What is known of a cut between two parts of a text, the first of which ends with a line feed and the second of
  // which begins with an ASCII character: pieces end here with and without the cut; or the cut is the only
  // difference to the pieces, so that it is for the model to say whether it matters; or neither.
  enum class Cut { between_pieces, within_piece, unknown };
  Cut cut_between(std::string_view left, std::string_view right) const;

 private:
  // What happens to the matches of a pattern, in the words of tokenizer.json.
  enum class Behaviour { isolated, removed, merged_with_previous, merged_with_next, contiguous };
  enum class Prefix { never, first, always };
  struct Step {
    std::optional<TextPattern> pattern = {};  // none: no splitting
    Behaviour behaviour = Behaviour::isolated;
    bool invert = false;  // what does not match is the match
    Prefix prefix = Prefix::never;
    std::string space = " ";  // what stands for a space, and is put before the text
  };
  void add(const nlohmann::json& json, const std::string& where);
  void add_metaspace(const nlohmann::json& json, const std::string& where);
  void run(size_t step, std::string_view text, Place place, const Emit& emit) const;

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

// GPT-2's pattern, which ByteLevel splits with.
inline constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace normlab
