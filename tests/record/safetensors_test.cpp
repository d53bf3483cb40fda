// The safetensors format: round trips, the files of the reference, a full disk.
#include "normlab/record/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

using testing::ElementsAre;

TensorView view(const std::string& name, Dtype dtype, std::vector<int64_t> shape, std::string_view bytes) {
  return {name, dtype, std::move(shape), reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

std::string bytes_of(const TensorView& tensor) { return {reinterpret_cast<const char*>(tensor.data), tensor.bytes}; }

class Safetensors : public testing::Test {
 protected:
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
    EXPECT_EQ(error.what(), concat("[", path.string(), "] has no tensor 'wieght'; the nearest is 'weight'."));
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

TEST_F(Safetensors, NeedsARegularFile) {
  EXPECT_THROW(SafetensorsFile{folder.path()}, DataError);
  EXPECT_THROW(SafetensorsFile{folder / "missing"}, DataError);
  EXPECT_THROW(SafetensorsFile{"/dev/null"}, DataError);
}

TEST(SafetensorsHeaderSize, AtMostAHundredMegabytes) {
  TemporaryFolder folder;
  const uint64_t length = 100'000'001;
  write_file_atomically(folder / "large", {reinterpret_cast<const char*>(&length), sizeof length});
  std::filesystem::resize_file(folder / "large", 110'000'000);  // sparse
  EXPECT_THAT([&] { SafetensorsFile{folder / "large"}; },
              testing::ThrowsMessage<DataError>(testing::HasSubstr("expected at most 100000000")));
}

}  // namespace
}  // namespace normlab
