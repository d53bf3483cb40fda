// The model of a tokenizer.json: byte pair encoding of a piece of text, on token ids.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace normlab {

// Merges by pair of ids in one flat table, which is looked up for every pair of neighbours.
class MergeTable {
 public:
  struct Merge {
    uint32_t rank = none;
    int32_t id = -1;  // of the merged token
  };
  static constexpr uint32_t none = UINT32_MAX;

  explicit MergeTable(size_t size = 0);
  void set(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Merge merge;
  };
  size_t slot_of(uint64_t key) const;
  std::vector<Slot> slots_;  // a power of two of them, at most half in use
};

class BpeModel {
 public:
  BpeModel() = default;
  // `bytes`: a symbol is a byte, written as a character (byte_characters.h); otherwise a symbol is a character.
  BpeModel(const nlohmann::json& json, bool bytes, const std::string& where);

  // Tokens of pieces seen before; for one thread, for as long as one text is encoded.
  using Cache = std::unordered_map<std::string, std::vector<int32_t>>;
  void encode(std::string_view piece, Cache& cache, std::vector<int32_t>& out) const;

  // Whether no merge joins a line feed with another character after it, so that a piece can be cut there.
  bool line_feeds_end_tokens() const { return line_feeds_end_tokens_; }

  std::optional<int32_t> id_of(const std::string& token) const;
  const std::unordered_map<std::string, int32_t>& vocabulary() const { return id_of_; }

 private:
  void read_merges(const nlohmann::json& merges, const std::string& where);
  void read_symbols(const std::string& where);
  std::vector<int32_t> merged(std::string_view piece) const;
  std::vector<int32_t> symbols_of(std::string_view piece) const;
  void encode_word(std::string_view word, Cache& cache, std::vector<int32_t>& out) const;

  std::unordered_map<std::string, int32_t> id_of_;        // by token as the file writes it
  std::unordered_map<std::string, int32_t> id_of_piece_;  // by what a piece contains: bytes, or the same
  MergeTable merges_;
  std::vector<int32_t> symbol_ids_;      // by byte or code point; -1: none
  std::array<int32_t, 256> fallback_{};  // "<0x00>" ...; -1: none
  std::optional<int32_t> unknown_;
  bool bytes_ = false, byte_fallback_ = false, fuse_unknown_ = false, whole_pieces_ = false;
  bool line_feeds_end_tokens_ = false;
  bool words_apart_ = false;  // no token has U+2581 after another character: pieces can be cut there
};

}  // namespace normlab
