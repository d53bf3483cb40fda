// Tokenizer: nanoGPT's vocabulary, round trips, streaming, and what is refused.
#include "normlab/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr const char* mixed = "h\xC3\xA9llo \xE2\x82\xAC\xF0\x9F\x98\x80\n";  // hello with an accent, euro, smiley

TEST(Tokenizer, CharactersAreTheSortedCodePoints) {
  const Tokenizer tokenizer = Tokenizer::make("char", "banana\n\xC3\xA9");
  EXPECT_EQ(tokenizer.vocab_size(), 5);
  EXPECT_THAT(tokenizer.encode("\nabn\xC3\xA9"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(tokenizer.kind_name(), "char");
}

TEST(Tokenizer, BytesAreTheByteValues) {
  const Tokenizer tokenizer = Tokenizer::make("byte", "");
  EXPECT_EQ(tokenizer.vocab_size(), 256);
  EXPECT_THAT(tokenizer.encode(std::string_view("a\0\xFF", 3)), ElementsAre(97, 0, 255));
  EXPECT_EQ(tokenizer.kind_name(), "byte");
}

TEST(Tokenizer, RoundTrips) {
  for (const std::string_view kind : {"char", "byte"}) {
    const Tokenizer tokenizer = Tokenizer::make(kind, mixed);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(mixed)), mixed);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("")), "");
    const Tokenizer read = Tokenizer::from_json(nlohmann::json::parse(tokenizer.to_json().dump()));
    EXPECT_EQ(read, tokenizer);
    EXPECT_EQ(read.encode(mixed), tokenizer.encode(mixed));
  }
  EXPECT_NE(Tokenizer::make("char", "ab"), Tokenizer::make("char", "ac"));
  EXPECT_NE(Tokenizer::make("char", "ab"), Tokenizer::make("byte", "ab"));
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  const Tokenizer bytes = Tokenizer::make("byte", "");
  EXPECT_EQ(bytes.decode(bytes.encode(all_bytes)), all_bytes);
}

TEST(Tokenizer, NamesTheUnknownCharacterAndItsPlace) {
  const Tokenizer tokenizer = Tokenizer::make("char", "ab\xC3\xA9");
  const auto message = AllOf(HasSubstr("[prompt]"), HasSubstr("'\xC3\xBC' (U+00FC) at character 2 (byte 3)"),
                             HasSubstr("the 3 of the vocabulary"));
  EXPECT_THAT([&] { tokenizer.encode("a\xC3\xA9\xC3\xBC", "prompt"); }, ThrowsMessage<DataError>(message));
  // A code point above the largest of the vocabulary, and one below it.
  EXPECT_THROW(tokenizer.encode("\xF0\x9F\x98\x80"), DataError);
  EXPECT_THROW(tokenizer.encode("c"), DataError);
  EXPECT_THAT([&] { tokenizer.encode("ab\xFF"); }, ThrowsMessage<DataError>(HasSubstr("UTF-8 at byte 2")));
}

TEST(Tokenizer, RefusesBadArguments) {
  EXPECT_THAT([] { Tokenizer::make("word", "a"); }, ThrowsMessage<UsageError>(HasSubstr("expected char or byte")));
  EXPECT_THROW(Tokenizer::make("char", ""), DataError);
  EXPECT_THROW(Tokenizer::make("char", "\x80"), DataError);
  for (const std::string_view kind : {"char", "byte"}) {
    const Tokenizer tokenizer = Tokenizer::make(kind, "ab");
    for (const int32_t token : {-1, tokenizer.vocab_size()})
      EXPECT_THROW(tokenizer.decode({&token, 1}), DataError) << kind << " " << token;
  }
}

TEST(Tokenizer, RefusesDamagedJson) {
  for (const char* text :
       {"null", "[]", "3", "{}", R"({"kind":3})", R"({"kind":"word"})", R"({"kind":"char"})", R"({"symbols":"ab"})",
        R"({"kind":"char","symbols":["a"]})", R"({"kind":"char","symbols":""})", R"({"kind":"char","symbols":"ba"})",
        R"({"kind":"char","symbols":"aab"})"})
    EXPECT_THROW(Tokenizer::from_json(nlohmann::json::parse(text)), DataError) << text;
  EXPECT_THROW(Tokenizer::from_json({{"kind", "char"}, {"symbols", "a\xFF"}}), DataError);
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (const int32_t token : tokens) {
    const std::string part = decoder.push(token);
    EXPECT_EQ(first_invalid_utf8(part), std::nullopt);
    out += part;
  }
  const std::string rest = decoder.finish();
  EXPECT_EQ(first_invalid_utf8(rest), std::nullopt);
  EXPECT_EQ(decoder.finish(), "");
  return out + rest;
}

TEST(StreamDecoder, GivesOutWholeCharactersOnly) {
  for (const std::string_view kind : {"char", "byte"}) {
    const Tokenizer tokenizer = Tokenizer::make(kind, mixed);
    EXPECT_EQ(streamed(tokenizer, tokenizer.encode(mixed)), mixed) << kind;
  }
  StreamDecoder decoder(Tokenizer::make("byte", ""));
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push(0x82), "");
  EXPECT_EQ(decoder.push(0xAC), "\xE2\x82\xAC");
}

TEST(StreamDecoder, ReplacesBrokenBytes) {
  const Tokenizer tokenizer = Tokenizer::make("byte", "");
  EXPECT_EQ(streamed(tokenizer, {'a', 0xE2, 0x82, 'b'}),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(streamed(tokenizer, {0xFF, 0x80}), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(streamed(tokenizer, {0xE2, 0xF0, 0x9F, 0x98, 0x80}), "\xEF\xBF\xBD\xF0\x9F\x98\x80");
  EXPECT_EQ(streamed(tokenizer, {'a', 0xF0, 0x9F}), "a\xEF\xBF\xBD");
  std::vector<int32_t> every_byte_twice;
  for (int byte = 0; byte < 512; ++byte) every_byte_twice.push_back(byte * 37 % 256);
  streamed(tokenizer, every_byte_twice);
}

}  // namespace
}  // namespace normlab
