// Images for dense heat maps: a grey PNG of one byte per cell, coloured by filters that follow the light or dark
// setting.
#include "normlab/report/level_image.h"

#include <zlib.h>

#include <charconv>

#include "normlab/base/base64.h"
#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "normlab/report/palette.h"

namespace normlab {
namespace {

constexpr std::size_t ramp_points = 24;

void append_number(std::string& out, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(value >> shift & 255);
}

void append_chunk(std::string& out, std::string_view type, const std::string& content) {
  append_number(out, static_cast<std::uint32_t>(content.size()));
  const std::string checked = concat(type, content);
  out += checked;
  append_number(out, static_cast<std::uint32_t>(
                         crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()))));
}

std::string deflated(const std::string& content) {
  uLongf size = compressBound(static_cast<uLong>(content.size()));
  std::string out(size, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(content.data()), static_cast<uLong>(content.size()), 9);
  if (status != Z_OK) throw Error("png", concat("zlib cannot compress the image; got status ", status, "."));
  out.resize(size);
  return out;
}

// One channel of the colours "#rrggbb", as shares of 255.
std::string table_values(const std::vector<Tone>& tones, std::string Tone::*side, std::size_t channel) {
  std::string out;
  for (const Tone& tone : tones) {
    const char* digits = (tone.*side).data() + 1 + 2 * channel;
    int value = 0;
    std::from_chars(digits, digits + 2, value, 16);
    out += concat(out.empty() ? "" : " ", fixed(value / 255.0, 3));
  }
  return out;
}

}  // namespace

std::string png(const LevelImage& image) {
  std::string header, rows;
  append_number(header, static_cast<std::uint32_t>(image.width));
  append_number(header, static_cast<std::uint32_t>(image.height));
  header += std::string("\x08\x00\x00\x00\x00", 5);  // 8 bits, grey, deflate, filters per row, not interlaced
  for (std::size_t row = 0; row < image.height; ++row) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(image.levels.data()) + row * image.width, image.width);
  }
  std::string out = "\x89PNG\r\n\x1a\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "tRNS", std::string(2, '\0'));  // level 0
  append_chunk(out, "IDAT", deflated(rows));
  append_chunk(out, "IEND", "");
  return out;
}

void define_level_filters(Svg& svg, const std::string& id) {
  const std::vector<Tone> tones = heat_tones(ramp_points);
  svg.open("defs");
  for (const auto& [name, side] : {std::pair("-light", &Tone::light), std::pair("-dark", &Tone::dark)}) {
    svg.open("filter", {{"id", id + name}, {"color-interpolation-filters", "sRGB"}});
    svg.open("feComponentTransfer");
    std::size_t channel = 0;
    for (const char* function : {"feFuncR", "feFuncG", "feFuncB"})
      svg.element(function, {{"type", "table"}, {"tableValues", table_values(tones, side, channel++)}});
    svg.close();
    svg.close();
  }
  svg.close();
}

void draw_levels(Svg& svg, const Area& area, const LevelImage& image, const std::string& filter_id) {
  if (image.levels.empty()) return;
  svg.element("image",
              {{"class", "levels"},
               {"x", px(area.left)},
               {"y", px(area.top)},
               {"width", px(area.width)},
               {"height", px(area.height)},
               {"preserveAspectRatio", "none"},
               {"style", concat("--on-light:url(#", filter_id, "-light);--on-dark:url(#", filter_id, "-dark)")},
               {"href", concat("data:image/png;base64,", to_base64(png(image)))}});
}

}  // namespace normlab
