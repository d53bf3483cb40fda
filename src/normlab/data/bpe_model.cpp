// Pairs are merged in the order of their ranks, the leftmost first among equals.
#include "normlab/data/bpe_model.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <queue>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/data/byte_characters.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

using nlohmann::json;

constexpr std::string_view metaspace = "\u2581";
constexpr size_t longest_kept = 64;    // bytes of a piece in the cache
constexpr size_t most_kept = 1 << 18;  // pieces in the cache
constexpr size_t few_symbols = 64;     // up to here a scan for the next merge is faster than a queue

void require_default(const json& model, const char* key, const std::string& where) {
  if (!model.contains(key)) return;
  const json& value = model[key];
  const bool off = value.is_null() || (value.is_string() && value.get<std::string>().empty()) ||
                   (value.is_number() && value.get<double>() == 0.0);
  if (!off) throw DataError(where, concat("the model has ", key, " ", value.dump(), ", which is not supported."));
}

std::string fallback_name(int byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[static_cast<size_t>(byte / 16)], digits[static_cast<size_t>(byte % 16)], '>'};
}

bool has_metaspace_inside(std::string_view token) {
  for (size_t at = token.find(metaspace); at != token.npos; at = token.find(metaspace, at + 1))
    if (at > 0 && !token.substr(0, at).ends_with(metaspace)) return true;
  return false;
}

bool goes_on_after_line_feed(std::string_view token) {
  const size_t first = token.find('\n');
  return first != token.npos && token.find_first_not_of('\n', first) != token.npos;
}

// Few symbols: the rank of each neighbouring pair is kept, the lowest is searched for.
void merge_by_scan(const MergeTable& merges, std::vector<int32_t>& ids) {
  std::array<MergeTable::Merge, few_symbols> next;
  size_t n = ids.size();
  for (size_t i = 0; i + 1 < n; ++i) next[i] = merges.find(ids[i], ids[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (next[i].rank < next[best].rank) best = i;
    if (next[best].rank == MergeTable::none) break;
    ids[best] = next[best].id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(next.begin() + static_cast<std::ptrdiff_t>(best) + 1, next.begin() + static_cast<std::ptrdiff_t>(n) - 1,
              next.begin() + static_cast<std::ptrdiff_t>(best));
    --n;
    if (best + 1 < n) next[best] = merges.find(ids[best], ids[best + 1]);
    if (best > 0) next[best - 1] = merges.find(ids[best - 1], ids[best]);
  }
}

// Many: a queue of candidates, and the symbols as a linked list.
void merge_by_queue(const MergeTable& merges, std::vector<int32_t>& ids) {
  struct Candidate {
    uint32_t rank;
    size_t at;
    int32_t id;
    bool operator>(const Candidate& other) const { return std::pair(rank, at) > std::pair(other.rank, other.at); }
  };
  constexpr int32_t removed = -1;
  const size_t n = ids.size();
  std::vector<size_t> left(n), right(n);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t at) {
    const MergeTable::Merge merge = merges.find(ids[at], ids[right[at]]);
    if (merge.rank != MergeTable::none) queue.push({merge.rank, at, merge.id});
  };
  for (size_t i = 0; i < n; ++i) left[i] = i - 1, right[i] = i + 1;  // n, and 0 - 1: none
  for (size_t i = 0; i + 1 < n; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const size_t next = right[top.at];
    if (ids[top.at] == removed || next >= n || merges.find(ids[top.at], ids[next]).id != top.id) continue;
    ids[top.at] = top.id;
    ids[next] = removed;
    right[top.at] = right[next];
    if (right[top.at] < n) left[right[top.at]] = top.at, offer(top.at);
    if (left[top.at] < n) offer(left[top.at]);
  }
  std::erase(ids, removed);
}

}  // namespace

MergeTable::MergeTable(size_t size) : slots_(std::bit_ceil(2 * size + 1)) {}

size_t MergeTable::slot_of(uint64_t key) const {
  constexpr uint64_t golden = 0x9E3779B97F4A7C15;  // Fibonacci hashing
  const size_t mask = slots_.size() - 1;
  const uint64_t mixed = key * golden;
  size_t slot = (mixed ^ (mixed >> 32)) & mask;
  while (slots_[slot].key != key && slots_[slot].key != UINT64_MAX) slot = (slot + 1) & mask;
  return slot;
}

namespace {
uint64_t pair_key(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}
}  // namespace

void MergeTable::set(int32_t left, int32_t right, Merge merge) {
  Slot& slot = slots_[slot_of(pair_key(left, right))];
  slot = {pair_key(left, right), merge};
}

MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  return slots_[slot_of(pair_key(left, right))].merge;
}

BpeModel::BpeModel(const json& model, bool bytes, const std::string& where) : bytes_(bytes) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    require_default(model, key, where);
  byte_fallback_ = model.value("byte_fallback", false);
  fuse_unknown_ = model.value("fuse_unk", false);
  whole_pieces_ = model.value("ignore_merges", false);
  for (const auto& [token, id] : model.at("vocab").items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > (1U << 30))
      throw DataError(where, concat("the token '", token, "' has the id ", id.dump(), "; expected a whole number."));
    id_of_.emplace(token, id.get<int32_t>());
  }
  if (id_of_.empty()) throw DataError(where, "the vocabulary is empty.");
  read_merges(model.at("merges"), where);
  read_symbols(where);
  if (const json unknown = model.value("unk_token", json()); unknown.is_string()) {
    unknown_ = id_of(unknown);
    if (!unknown_) throw DataError(where, concat("the unknown token ", unknown.dump(), " is not in the vocabulary."));
  }
}

void BpeModel::read_merges(const json& merges, const std::string& where) {
  if (!merges.is_array()) throw DataError(where, "merges are not a list.");
  merges_ = MergeTable(merges.size());
  uint32_t rank = 0;
  line_feeds_end_tokens_ = !bytes_ && !whole_pieces_;
  words_apart_ = !bytes_ && !whole_pieces_ && id_of_.contains(std::string(metaspace));
  for (const json& merge : merges) {
    std::string left, right;
    if (merge.is_string()) {  // as older files have them
      const std::string text = merge;
      const size_t space = text.find(' ');
      left = text.substr(0, space);
      if (space != text.npos) right = text.substr(space + 1);
    } else {
      left = merge.at(0), right = merge.at(1);
    }
    const auto left_id = id_of(left), right_id = id_of(right), id = id_of(left + right);
    if (!left_id || !right_id || !id)
      throw DataError(where, concat("merge ", rank + 1, ", '", left, "' and '", right,
                                    "', is not of tokens of the vocabulary, or its result is not."));
    merges_.set(*left_id, *right_id, {rank++, *id});
    if (words_apart_ && has_metaspace_inside(left + right)) words_apart_ = false;
    if (goes_on_after_line_feed(left + right)) line_feeds_end_tokens_ = false;
  }
}

void BpeModel::read_symbols(const std::string& where) {
  for (int byte = 0; byte < 256; ++byte) fallback_[static_cast<size_t>(byte)] = id_of(fallback_name(byte)).value_or(-1);
  symbol_ids_.assign(bytes_ ? 256 : largest_code_point + 1, -1);
  for (const auto& [token, id] : id_of_) {
    const std::optional<std::string> piece = bytes_ ? characters_as_bytes(token) : token;
    if (!piece || piece->empty()) continue;
    if (whole_pieces_) id_of_piece_.emplace(*piece, id);
    if (bytes_ && piece->size() == 1) symbol_ids_[static_cast<uint8_t>((*piece)[0])] = id;
    if (bytes_) continue;
    const Utf8Item item = decode_utf8(*piece, 0);
    if (static_cast<size_t>(item.length) == piece->size()) symbol_ids_[item.value] = id;
  }
  const bool lacks_byte = std::find(symbol_ids_.begin(), symbol_ids_.end(), -1) != symbol_ids_.end();
  if (bytes_ && byte_fallback_ && lacks_byte)
    throw DataError(where,
                    "the model has byte_fallback and a ByteLevel vocabulary without all bytes, which is not "
                    "supported.");
}

std::optional<int32_t> BpeModel::id_of(const std::string& token) const {
  const auto found = id_of_.find(token);
  return found == id_of_.end() ? std::nullopt : std::optional(found->second);
}

// A symbol outside the vocabulary becomes its bytes, or the unknown token, or nothing.
std::vector<int32_t> BpeModel::symbols_of(std::string_view piece) const {
  std::vector<int32_t> ids;
  ids.reserve(piece.size());
  bool pending = false;  // an unknown token that the next one may be fused with
  for (size_t at = 0; at < piece.size();) {
    const Utf8Item item = bytes_ ? Utf8Item{static_cast<uint8_t>(piece[at]), 1} : decode_utf8(piece, at);
    const std::string_view symbol = piece.substr(at, static_cast<size_t>(item.length));
    at += symbol.size();
    if (const int32_t id = symbol_ids_[item.value]; id >= 0) {
      if (pending) ids.push_back(*unknown_);
      pending = false;
      ids.push_back(id);
      continue;
    }
    const auto fallback = [&](char byte) { return fallback_[static_cast<uint8_t>(byte)]; };
    if (byte_fallback_ && std::all_of(symbol.begin(), symbol.end(), [&](char byte) { return fallback(byte) >= 0; })) {
      std::transform(symbol.begin(), symbol.end(), std::back_inserter(ids), fallback);
      continue;
    }
    if (pending && !fuse_unknown_) ids.push_back(*unknown_);
    pending = unknown_.has_value();
  }
  if (pending) ids.push_back(*unknown_);
  return ids;
}

std::vector<int32_t> BpeModel::merged(std::string_view piece) const {
  if (whole_pieces_)
    if (const auto found = id_of_piece_.find(std::string(piece)); found != id_of_piece_.end()) return {found->second};
  std::vector<int32_t> ids = symbols_of(piece);
  if (ids.size() <= few_symbols)
    merge_by_scan(merges_, ids);
  else
    merge_by_queue(merges_, ids);
  return ids;
}

void BpeModel::encode_word(std::string_view word, Cache& cache, std::vector<int32_t>& out) const {
  if (word.size() > longest_kept) {
    const std::vector<int32_t> ids = merged(word);
    out.insert(out.end(), ids.begin(), ids.end());
    return;
  }
  if (cache.size() > most_kept) cache.clear();
  const auto [entry, is_new] = cache.try_emplace(std::string(word));
  if (is_new) entry->second = merged(word);
  out.insert(out.end(), entry->second.begin(), entry->second.end());
}

void BpeModel::encode(std::string_view piece, Cache& cache, std::vector<int32_t>& out) const {
  if (!words_apart_) return encode_word(piece, cache, out);
  size_t begin = 0;
  for (size_t at = piece.find(metaspace); at != piece.npos; at = piece.find(metaspace, at + metaspace.size())) {
    if (at == begin || piece.substr(begin, at - begin).ends_with(metaspace)) continue;
    encode_word(piece.substr(begin, at - begin), cache, out);
    begin = at;
  }
  if (begin < piece.size()) encode_word(piece.substr(begin), cache, out);
}

}  // namespace normlab
