// The safetensors format: round trips, files of the reference, and files with every kind of damage.
#include "record/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <set>

#include "../sandbox.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"

namespace normlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorView view(const std::string& name, Dtype dtype, std::vector<int64_t> shape, std::string_view bytes) {
  return {name, dtype, std::move(shape), reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

std::string bytes_of(const TensorView& tensor) { return {reinterpret_cast<const char*>(tensor.data), tensor.bytes}; }

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

class Safetensors : public testing::Test {
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
  void write(const std::string& content) {
    std::filesystem::remove(path);
    File::append(path).write(content);
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "file.safetensors";
};

TEST_F(Safetensors, EveryDtypeReadsBack) {
  const std::string data = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL";  // 48 bytes
  const Dtype all[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::i64,
                       Dtype::i32, Dtype::i16, Dtype::i8,  Dtype::u8,   Dtype::boolean};
  std::vector<TensorView> tensors;
  for (const Dtype dtype : all) {
    const auto rows = static_cast<int64_t>(data.size() / dtype_size(dtype) / 3);
    tensors.push_back(view(std::string(dtype_name(dtype)), dtype, {rows, 3}, data));
    EXPECT_EQ(find_dtype(dtype_name(dtype)), dtype);
  }
  write_safetensors(path, tensors, {{"config", "p = 3\n\"\u00e9\""}});
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 10u);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"config", "p = 3\n\"\u00e9\""}}));
  for (const TensorView& written : tensors) {
    const TensorView& read = file.at(written.name);
    EXPECT_EQ(read.dtype, written.dtype);
    EXPECT_EQ(read.shape, written.shape);
    EXPECT_EQ(bytes_of(read), data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data) % dtype_size(read.dtype), 0u) << written.name;
  }
}

TEST_F(Safetensors, OddShapes) {
  const std::vector<TensorView> tensors = {view("scalar", Dtype::f32, {}, "abcd"),
                                           view("empty", Dtype::f64, {3, 0}, ""), view("", Dtype::u8, {1, 1, 1}, "x")};
  write_safetensors(path, tensors, {});
  const SafetensorsFile file(path);
  EXPECT_THAT(file.at("scalar").shape, ElementsAre());
  EXPECT_THAT(file.at("empty").shape, ElementsAre(3, 0));
  EXPECT_EQ(bytes_of(file.at("")), "x");
  EXPECT_TRUE(file.metadata().empty());
}

TEST_F(Safetensors, NoTensors) {
  write_safetensors(path, {}, {});
  EXPECT_TRUE(SafetensorsFile(path).tensors().empty());
  EXPECT_EQ(std::filesystem::file_size(path), 64u);
}

TEST_F(Safetensors, BytesDoNotDependOnTheOrder) {
  const auto a = view("a", Dtype::u8, {3}, "123"), b = view("b", Dtype::f32, {1}, "4567");
  write_safetensors(path, std::vector{a, b}, {{"k", "v"}, {"j", "w"}});
  const std::string first = read_file(path);
  write_safetensors(path, std::vector{b, a}, {{"j", "w"}, {"k", "v"}});
  EXPECT_EQ(read_file(path), first);
  EXPECT_EQ((first.size() - 7) % 64, 0u);
  EXPECT_TRUE(first.ends_with("4567123"));
}

TEST_F(Safetensors, FindAndAt) {
  write_safetensors(path, std::vector{view("weight", Dtype::u8, {1}, "x")}, {});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.find("weigh"), nullptr);
  ASSERT_NE(file.find("weight"), nullptr);
  EXPECT_THROW(file.at("bias"), DataError);
  try {
    file.at("wieght");
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(), str("[", path.string(), "] has no tensor 'wieght'; the nearest is 'weight'."));
  }
}

TEST_F(Safetensors, ViewsOutliveTheFileObjectTheyWereCopiedFrom) {
  write_safetensors(path, std::vector{view("w", Dtype::u8, {2}, "xy")}, {});
  auto original = std::make_unique<SafetensorsFile>(path);
  const SafetensorsFile copy = *original;
  original.reset();
  std::filesystem::remove(path);
  EXPECT_EQ(bytes_of(copy.at("w")), "xy");
}

TEST_F(Safetensors, ReferenceFilesAreRead) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(NORMLAB_SOURCE_DIR "/tests/reference")) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file(entry.path());
    EXPECT_FALSE(file.tensors().empty() || file.metadata().empty()) << entry.path();
    // Written again, and read again, every byte of every tensor is the same.
    write_safetensors(path, file.tensors(), file.metadata());
    const SafetensorsFile again(path);
    EXPECT_EQ(again.metadata(), file.metadata());
    for (const TensorView& tensor : file.tensors()) EXPECT_EQ(bytes_of(again.at(tensor.name)), bytes_of(tensor));
    ++count;
  }
  EXPECT_GE(count, 10u);
}

TEST_F(Safetensors, WriterRefusesWhatTheReaderWould) {
  const auto good = view("a", Dtype::u8, {3}, "123");
  EXPECT_THROW(write_safetensors(path, std::vector{good, good}, {}), Error);
  EXPECT_THROW(write_safetensors(path, std::vector{view("a", Dtype::f32, {3}, "123")}, {}), Error);
  EXPECT_THROW(write_safetensors(path, std::vector{view("a", Dtype::u8, {-3}, "123")}, {}), Error);
  EXPECT_THROW(write_safetensors(path, std::vector{view("__metadata__", Dtype::u8, {3}, "123")}, {}), Error);
  EXPECT_THROW(write_safetensors(path, std::vector{view("\xff", Dtype::u8, {3}, "123")}, {}), Error);
  EXPECT_THROW(write_safetensors(path, std::vector{good}, {{"k", "\xff"}}), Error);
  EXPECT_EQ(folder.count_entries(), 0u);
}

TEST_F(Safetensors, FullDiskKeepsTheOldFile) {
  write_safetensors(path, std::vector{view("old", Dtype::u8, {1}, "x")}, {});
  const int status = run_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string data(200000, 'x');
    try {
      write_safetensors(path, std::vector{view("new", Dtype::u8, {200000}, data)}, {});
    } catch (const Error& error) {
      return std::string(error.what()).find("File too large") != std::string::npos ? 0 : 1;
    }
    return 2;
  });
  EXPECT_TRUE(exited_with(status, 0));
  EXPECT_NE(SafetensorsFile(path).find("old"), nullptr);
  EXPECT_EQ(folder.count_entries(), 1u);
}

struct BadFile {
  std::string content, complaint;
};

TEST_F(Safetensors, DamageIsNamed) {
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
    EXPECT_TRUE(message.starts_with("[" + path.string() + "] ")) << message;
  }
}

TEST_F(Safetensors, NeedsARegularFile) {
  EXPECT_THROW(SafetensorsFile{folder.path()}, DataError);
  EXPECT_THROW(SafetensorsFile{folder / "missing"}, DataError);
  EXPECT_THROW(SafetensorsFile{"/dev/null"}, DataError);
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

TEST_F(Safetensors, MutatedFilesAreReadOrRefused) {
  const std::string data(48, 'x');
  const std::vector<TensorView> tensors = {view("a", Dtype::f32, {3, 4}, data), view("b", Dtype::u8, {48}, data),
                                           view("c", Dtype::f64, {0}, "")};
  write_safetensors(path, tensors, {{"key", "value"}});
  const std::string valid = read_file(path);
  size_t accepted = 0, refused = 0;
  volatile char sink = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    write(mutated(valid, seed));
    try {
      const SafetensorsFile file(path);
      for (const TensorView& tensor : file.tensors()) {
        for (const char byte : bytes_of(tensor)) sink = static_cast<char>(sink ^ byte);
      }
      ++accepted;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 2500u);
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  write_safetensors(path, std::vector{view("a", Dtype::u8, {40}, std::string(40, 'x'))}, {{"key", "value"}});
  const std::string valid = read_file(path);
  for (size_t size = 0; size < valid.size(); ++size) EXPECT_NE(refusal(valid.substr(0, size)), "accepted") << size;
}

}  // namespace
}  // namespace normlab
