// Layout of text in charts: how wide it is, where lines break, how labels keep clear of each other.
#include "normlab/report/layout.h"

#include <algorithm>

#include "normlab/base/text.h"

namespace normlab {
namespace {

// Widths in em; a byte that continues a UTF-8 character has none.
double char_width(char c) {
  constexpr std::string_view slim = "iIjlftr.,:;'|!()[]- ", wide = "mwMW@%";
  if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) return 0;
  if (static_cast<unsigned char>(c) >= 0xE3) return 1;  // ideographs and emoji
  if (slim.find(c) != std::string_view::npos) return 0.36;
  if (wide.find(c) != std::string_view::npos) return 0.9;
  if (c >= 'A' && c <= 'Z') return 0.7;
  return c >= 'a' && c <= 'z' ? 0.59 : 0.61;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const char c : text) width += char_width(c);
  return width * size;
}

std::vector<std::string> wrap(std::string_view text, double width, double size) {
  std::vector<std::string> lines;
  for (const std::string& word : split(text, ' ')) {
    if (!lines.empty() && text_width(concat(lines.back(), ' ', word), size) <= width) {
      lines.back() += ' ' + word;
    } else if (!word.empty()) {
      lines.push_back(word);
    }
  }
  return lines;
}

std::string shortened(std::string_view text, double width, double size) {
  if (text_width(text, size) <= width) return std::string(text);
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  const double room = width - 0.9 * size;  // beside the ellipsis: more for the start, some for the end
  std::size_t head = 0, tail = text.size();
  while (head < tail && text_width(text.substr(0, head + 1), size) <= 0.6 * room) ++head;
  while (tail > head && text_width(text.substr(tail - 1), size) <= 0.4 * room) --tail;
  while (head > 0 && head < text.size() && continues(head)) --head;  // never half a character
  while (tail < text.size() && continues(tail)) ++tail;
  return concat(text.substr(0, head), "\xE2\x80\xA6", text.substr(tail));
}

std::vector<double> spread(const std::vector<double>& wishes, double gap, double low, double high) {
  struct Block {
    double place;  // of its first label, when free
    int count;
  };
  if (wishes.size() > 1) gap = std::min(gap, (high - low) / static_cast<double>(wishes.size() - 1));
  const auto clamped = [&](double place, int count) {
    return std::clamp(place, low, std::max(low, high - gap * (count - 1)));
  };
  std::vector<Block> blocks;
  for (const double wish : wishes) {
    Block block{wish, 1};
    // Blocks that touch merge, and the merged block sits at the mean of what its labels wish.
    while (!blocks.empty() && clamped(blocks.back().place, blocks.back().count) + gap * blocks.back().count >
                                  clamped(block.place, block.count)) {
      const Block& before = blocks.back();
      const int count = before.count + block.count;
      block = {(before.place * before.count + (block.place - gap * before.count) * block.count) / count, count};
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  std::vector<double> places;
  for (const Block& block : blocks) {
    for (int i = 0; i < block.count; ++i) places.push_back(clamped(block.place, block.count) + gap * i);
  }
  return places;
}

}  // namespace normlab
