// Lines of files: plain and packed, whole and damaged.
#include "normlab/data/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TextLines : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) const {
    write_file_atomically(folder_ / "file", content);
    return folder_ / "file";
  }
  // What gzip makes of the text.
  std::string packed(const std::string& text) const {
    const std::string path = (folder_ / "packed").string();
    const gzFile out = gzopen(path.c_str(), "wb");
    gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    return read_file(path);
  }
  std::string refusal(const std::string& content) const {
    try {
      read_lines(file(content));
    } catch (const DataError& error) {
      return error.what();
    }
    return "not refused";
  }
  TemporaryFolder folder_;
};

TEST_F(TextLines, AreBetweenLineFeeds) {
  EXPECT_THAT(read_lines(file("a\n\nb\n")), ElementsAre("a", "", "b"));
  EXPECT_THAT(read_lines(file("a\nb")), ElementsAre("a", "b"));
  EXPECT_THAT(read_lines(file("\n")), ElementsAre(""));
  EXPECT_THAT(read_lines(file("a\u2028b\x0b\u0085 \r\n")), testing::SizeIs(1));
}

TEST_F(TextLines, Gzip) {
  EXPECT_THAT(read_lines(file(packed("a\nb\n"))), ElementsAre("a", "b"));
  EXPECT_THAT(read_lines(file(packed("a\nb") + packed("c\n"))), ElementsAre("a", "bc"));
  const std::string large(300000, 'x');
  EXPECT_THAT(read_lines(file(packed(large))), ElementsAre(large));
}

TEST_F(TextLines, TheFirstOnesAreWhole) {
  EXPECT_THAT(read_first_lines(file("one\ntwo\nthree\n"), 9), ElementsAre("one", "two"));
  EXPECT_THAT(read_first_lines(file("one\ntwo\nthree"), 100), ElementsAre("one", "two", "three"));
  std::string text;
  for (int i = 0; i < 100000; ++i) text += concat("line ", i, "\n");
  const auto lines = read_first_lines(file(packed(text)), 5000);  // neither packed nor unpacked more is read
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), concat("line ", lines.size() - 1));
  EXPECT_LT(lines.size(), 600U);
}

TEST_F(TextLines, RefusesDamage) {
  const std::string whole = packed("some text that is long enough to be cut\n");
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 5)), HasSubstr("cut off"));
  EXPECT_THAT(refusal(whole.substr(0, 3)), HasSubstr("cut off"));
  std::string wrong = whole;
  wrong[whole.size() / 2] ^= 0x55;
  EXPECT_THAT(refusal(wrong), HasSubstr("damaged gzip"));
  EXPECT_THAT(refusal(whole + "rest"), HasSubstr("damaged gzip"));
}

TEST_F(TextLines, RefusesWhatIsNoText) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal(packed("")), HasSubstr("is empty"));
  EXPECT_THAT(refusal("a\nb\nc\xFF \n"), HasSubstr("line 3, byte 1"));
  EXPECT_THROW(read_lines(folder_ / "missing"), DataError);
  EXPECT_THROW(read_lines(folder_.path()), DataError);
}

TEST(Gunzip, RefusesWhatUnpacksToFarMoreThanText) {
  // 100 MB of zeros, packed a thousandfold.
  const std::string zeros(100'000'000, '\0');
  std::string packed(zeros.size() / 100, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(zeros.data()));
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  EXPECT_THAT([&] { gunzip(packed, "bomb.gz"); }, testing::ThrowsMessage<DataError>(testing::HasSubstr("200 times")));
}

}  // namespace
}  // namespace normlab
