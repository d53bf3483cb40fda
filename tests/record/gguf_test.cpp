// The GGUF format: the bytes that are written, what is read back, and files that lie.
#include "normlab/record/gguf.h"

#include <gtest/gtest.h>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

class Gguf : public testing::Test {
 protected:
  void write() {
    const std::vector<GgufPair> pairs = {{"a", true},
                                         {"b", 7U},
                                         {"c", 0.5F},
                                         {"d", "text"},
                                         {"e", std::vector<int32_t>{1, -2}},
                                         {"f", std::vector<std::string>{"x", "", "yz"}}};
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    const std::vector<TensorView> tensors = {{"matrix", Dtype::f32, {2, 3}, data, 24},
                                             {"vector", Dtype::f32, {4}, data + 8, 16}};
    write_gguf(path, pairs, tensors);
  }
  // The message about a file in which `from` was replaced by `to`.
  std::string refused(const std::string& from, const std::string& to) {
    write();
    std::string content = read_file(path);
    const size_t at = content.find(from);
    EXPECT_NE(at, content.npos);
    content.replace(at, from.size(), to);
    return refused_content(content);
  }
  std::string refused_content(const std::string& content) {
    write_file_atomically(path, content);
    try {
      const GgufFile file(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  }

  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  TemporaryFolder folder;
  const std::filesystem::path path = folder / "file.gguf";
};

std::string number(uint64_t value, size_t bytes) { return {reinterpret_cast<const char*>(&value), bytes}; }

TEST_F(Gguf, TensorsReadBack) {
  write();
  const GgufFile file(path);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.at("matrix").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.at("vector").shape, (std::vector<int64_t>{4}));
  EXPECT_EQ(reinterpret_cast<const float*>(file.at("vector").data)[0], 3.0F);
  EXPECT_THROW(file.at("other"), DataError);
}

TEST_F(Gguf, TheFirstBytesAreThoseOfTheFormat) {
  write();
  const std::string start = "GGUF" + number(3, 4) + number(2, 8) + number(6, 8) + number(1, 8) + "a" + number(7, 4) +
                            number(1, 1) + number(1, 8) + "b" + number(4, 4) + number(7, 4);
  const std::string content = read_file(path);
  EXPECT_EQ(content.substr(0, start.size()), start);
  EXPECT_EQ(content.size() % 32, 0u);
  // Sizes from the inside out, float32, at the beginning of the data.
  const std::string info = "matrix" + number(2, 4) + number(3, 8) + number(2, 8) + number(0, 4) + number(0, 8);
  EXPECT_NE(content.find(info), content.npos);
}

TEST_F(Gguf, FilesThatLieAreRefused) {
  EXPECT_NE(refused("GGUF", "GGUG").find("is not a GGUF file"), std::string::npos);
  EXPECT_NE(refused(number(3, 4), number(2, 4)).find("version 2"), std::string::npos);
  EXPECT_NE(refused("text", "tex").find("file.gguf"), std::string::npos);
  const std::string info = "vector" + number(1, 4);
  EXPECT_NE(refused(info + number(4, 8), info + number(1 << 20, 8)).find("'vector' is not in the file"),
            std::string::npos);
  EXPECT_NE(refused(info + number(4, 8), info + number(UINT64_MAX, 8)).find("impossible size"), std::string::npos);
  EXPECT_NE(refused(info, "vector" + number(9, 4)).find("9 dimensions"), std::string::npos);
  EXPECT_NE(refused("vector", "matrix").find("two tensors named 'matrix'"), std::string::npos);
  write();
  const std::string whole = read_file(path);
  constexpr size_t padding = 16;  // after the last tensor
  for (size_t length = 0; length < whole.size() - padding; length += 7)
    EXPECT_NE(refused_content(whole.substr(0, length)), "accepted") << length;
}

}  // namespace
}  // namespace normlab
