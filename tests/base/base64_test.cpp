#include "normlab/base/base64.h"

#include <gtest/gtest.h>

namespace normlab {
namespace {

// RFC 4648, section 10.
TEST(Base64, ExamplesOfTheStandard) {
  const char* pairs[][2] = {{"", ""},
                            {"f", "Zg=="},
                            {"fo", "Zm8="},
                            {"foo", "Zm9v"},
                            {"foob", "Zm9vYg=="},
                            {"fooba", "Zm9vYmE="},
                            {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (size_t size = 0; size <= bytes.size(); ++size)
    EXPECT_EQ(from_base64(to_base64(bytes.substr(0, size))), bytes.substr(0, size));
}

TEST(Base64, OtherTextIsRefused) {
  for (const char* text : {"Zg=", "Z", "Zm9v!", "????"}) EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace normlab
