// The header of a safetensors file: every kind of damage is named, and no mutation gets past the checks.
#include "normlab/record/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

class SafetensorsDamage : public testing::Test {
 protected:
  std::string refusal(const std::string& content) {
    write(content);
    try {
      const SafetensorsFile file(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::string sample() {
    const std::string data(48, 'x');
    const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
    const TensorView tensors[] = {
        {"a", Dtype::f32, {3, 4}, bytes, 48}, {"b", Dtype::u8, {48}, bytes, 48}, {"c", Dtype::f64, {0}, bytes, 0}};
    write_safetensors(path, tensors, {{"key", "value"}});
    return read_file(path);
  }
  void write(const std::string& content) {
    std::filesystem::remove(path);
    File::append(path).write(content);
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "file.safetensors";
};

struct BadFile {
  std::string content, complaint;
};

TEST_F(SafetensorsDamage, DamageIsNamed) {
  const auto one = [](const std::string& entry, const std::string& data = "abcd") {
    return file_of("{\"a\":" + entry + "}", data);
  };
  const std::string good = R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  ASSERT_EQ(refusal(one(good)), "accepted");
  ASSERT_EQ(refusal(file_of("{}", "")), "accepted");
  ASSERT_EQ(refusal(file_of("{\"a\":" + good + "}   ", "abcd")), "accepted");
  const BadFile table[] = {
      {"", "too short"},
      {"1234567", "too short"},
      {one(good).substr(0, 20), "truncated"},
      {one(good).substr(0, 8), "truncated"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "truncated or not a safetensors file"},
      {one(good, "abc"), "outside of the 3 bytes"},
      {one(good, "abcde"), "last 1 bytes belong to no tensor"},
      {file_of("", ""), "not valid JSON"},
      {file_of("{\"a\":", ""), "not valid JSON at byte 6"},
      {file_of("{} x", ""), "not valid JSON"},
      {file_of("{\"\xff\":1}", ""), "not valid JSON"},
      {file_of("{\"a\":1e999}", ""), "number that is out of range"},
      {file_of("[]", ""), "is a JSON array"},
      {file_of("null", ""), "is a JSON null"},
      {file_of(std::string(100000, '['), ""), "nested too deeply"},
      {file_of("{\"a\":" + good + ",\"a\":" + good + "}", "abcd"), "holds \"a\" twice"},
      {one(R"({"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]})"), "holds \"dtype\" twice"},
      {one("[]"), "no dtype"},
      {one("{}"), "no dtype"},
      {one(R"({"dtype":7,"shape":[4],"data_offsets":[0,4]})"), "no dtype"},
      {one(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})"), "dtype \"F8_E4M3\", expected F64"},
      {one(R"({"dtype":"U8","data_offsets":[0,4]})"), "no list 'shape'"},
      {one(R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})"), "no list 'shape'"},
      {one(R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})"), "whole numbers"},
      {one(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})"), "whole numbers"},
      {one(R"({"dtype":"U8","shape":["4"],"data_offsets":[0,4]})"), "whole numbers"},
      {one(R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,4]})"), "whole numbers"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})"), "outside of"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})"), "outside of"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,5]})"), "outside of"},
      {one(R"({"dtype":"U8","shape":[3],"data_offsets":[0,4]})"), "has 4 bytes, which its shape"},
      {one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,4]})"), "has 4 bytes, which its shape"},
      {one(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"), "has 4 bytes"},  // 4 modulo 2^64
      {one(R"({"dtype":"U8","shape":[3],"data_offsets":[1,4]})"), "hole in the data before tensor \"a\""},
      {file_of(
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           "abcd"),
       "\"b\" overlaps another"},
      {file_of(R"({"__metadata__":[]})", ""), "metadata is not an object"},
      {file_of(R"({"__metadata__":{"k":1}})", ""), "metadata \"k\" is not a string"},
      {one(R"({"dtype":"U8","shape":[[4]],"data_offsets":[0,4]})"), "whole numbers"},
  };
  for (const BadFile& bad : table) {
    const std::string message = refusal(bad.content);
    EXPECT_THAT(message, HasSubstr(bad.complaint)) << bad.content.substr(0, 200);
    EXPECT_TRUE(message.starts_with(concat("[", path.string(), "] "))) << message;
  }
}

// Replaces, inserts, removes or swaps a few bytes; the header is hit more often than the data.
std::string mutated(std::string content, uint64_t seed) {
  const uint64_t key = stream_key(20, seed);
  const uint64_t edits = 1 + draw_below(key, 0, 4);
  for (uint64_t i = 1; i <= 4 * edits && !content.empty(); i += 4) {
    const size_t span = draw_below(key, i, 8) == 0 ? content.size() : std::min<size_t>(content.size(), 300);
    const size_t at = draw_below(key, i + 1, span);
    static constexpr std::string_view letters = "{}[]\",:0123456789-.eE \\u\0\xff\x80";
    const char letter = letters[draw_below(key, i + 2, letters.size())];
    switch (draw_below(key, i + 3, 5)) {
      case 0:
        content[at] = letter;
        break;
      case 1:
        content[at] = static_cast<char>(draw_bits(key, i + 3));
        break;
      case 2:
        content.insert(at, 1, letter);
        break;
      case 3:
        content.erase(at, 1 + draw_below(key, i + 2, 9));
        break;
      default:
        std::swap(content[at], content[draw_below(key, i + 2, content.size())]);
        break;
    }
  }
  return content;
}

TEST_F(SafetensorsDamage, MutatedFilesAreReadOrRefused) {
  const std::string valid = sample();
  size_t accepted = 0, refused = 0;
  volatile unsigned sink = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    write(mutated(valid, seed));
    try {
      const SafetensorsFile file(path);
      for (const TensorView& tensor : file.tensors()) {
        for (size_t i = 0; i < tensor.bytes; ++i) sink = sink ^ std::to_integer<unsigned>(tensor.data[i]);
      }
      ++accepted;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 2500u);
}

TEST_F(SafetensorsDamage, EveryTruncationIsRefused) {
  const std::string valid = sample();
  for (size_t size = 0; size < valid.size(); ++size) EXPECT_NE(refusal(valid.substr(0, size)), "accepted") << size;
}

}  // namespace
}  // namespace normlab
