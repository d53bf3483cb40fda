// Tests of level images.
#include "normlab/report/level_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "normlab/report/palette.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

struct Chunk {
  std::string type, content;
};

// Fails on a checksum that does not match.
std::vector<Chunk> chunks_of(const std::string& file) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 8; at < file.size();) {
    const std::uint32_t size = number_at(file, at);
    const std::string checked = file.substr(at + 4, size + 4);
    EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())),
              number_at(file, at + 8 + size));
    chunks.push_back({checked.substr(0, 4), checked.substr(4)});
    at += size + 12;
  }
  return chunks;
}

TEST(LevelImage, PngHasTheLevels) {
  const std::string file = png({3, 2, {1, 128, 255, 0, 7, 9}});
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  const std::vector<Chunk> chunks = chunks_of(file);
  ASSERT_EQ(chunks.size(), 4u);
  EXPECT_EQ(chunks[0].type, "IHDR");
  EXPECT_EQ(number_at(chunks[0].content, 0), 3u);
  EXPECT_EQ(number_at(chunks[0].content, 4), 2u);
  EXPECT_EQ(chunks[0].content.substr(8), std::string("\x08\x00\x00\x00\x00", 5));
  EXPECT_EQ(chunks[1].type, "tRNS");
  EXPECT_EQ(chunks[1].content, std::string(2, '\0'));  // level 0 is transparent
  std::string rows(8, 'x');
  uLongf size = rows.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                       reinterpret_cast<const Bytef*>(chunks[2].content.data()), chunks[2].content.size()),
            Z_OK);
  EXPECT_EQ(rows, std::string("\x00\x01\x80\xff\x00\x00\x07\x09", 8));
  EXPECT_EQ(chunks[3].type, "IEND");
}

TEST(LevelImage, FiltersHaveBothRamps) {
  Svg svg;
  define_level_filters(svg, "x");
  draw_levels(svg, {0, 0, 10, 10}, {1, 1, {5}}, "x");
  const std::string text = svg.take();
  EXPECT_EQ(testing::xml_problem(text), "");
  for (const char* part : {"id=\"x-light\"", "id=\"x-dark\"", "--on-light:url(#x-light)", "--on-dark:url(#x-dark)",
                           "href=\"data:image/png;base64,iVBORw0KGgo"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_EQ(testing::count(text, "tableValues="), 6u);
}

}  // namespace
}  // namespace normlab
