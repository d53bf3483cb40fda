// Files of any content: what is written reads back, and what is cut off or damaged is noticed.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "any_text.h"
#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/record/metrics.h"
#include "normlab/record/safetensors.h"
#include "normlab/record/tensorboard.h"
#include "sandbox.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

void overwrite(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::remove(path);
  File::append(path).write(content);
}

struct Tensors {
  std::map<std::string, std::string> bytes;
  std::vector<TensorView> views;
  std::map<std::string, std::string> metadata;
};
Tensors any_tensors() {
  Tensors out;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    const std::string name = any_text();
    if (name == "__metadata__" || out.bytes.contains(name)) continue;
    const auto dtype = static_cast<Dtype>(*rc::gen::inRange(0, 10));
    const auto shape =
        *rc::gen::container<std::vector<int64_t>>(*rc::gen::inRange<size_t>(0, 4), rc::gen::inRange<int64_t>(0, 5));
    size_t size = dtype_size(dtype);
    for (const int64_t extent : shape) size *= static_cast<size_t>(extent);
    out.bytes[name] = *rc::gen::container<std::string>(size, rc::gen::arbitrary<char>());
    out.views.push_back({name, dtype, shape, nullptr, size});
  }
  for (TensorView& view : out.views) view.data = reinterpret_cast<const std::byte*>(out.bytes.at(view.name).data());
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) out.metadata[any_text()] = any_text();
  return out;
}

TEST(SafetensorsProperties, AnyTensorsReadBack) {
  TemporaryFolder folder;
  EXPECT_TRUE(rc::check([&] {
    const Tensors tensors = any_tensors();
    write_safetensors(folder / "file", tensors.views, tensors.metadata);
    const SafetensorsFile file(folder / "file");
    RC_ASSERT(file.metadata() == tensors.metadata);
    RC_ASSERT(file.tensors().size() == tensors.views.size());
    for (const TensorView& written : tensors.views) {
      const TensorView& read = file.at(written.name);
      RC_ASSERT(read.dtype == written.dtype);
      RC_ASSERT(read.shape == written.shape);
      RC_ASSERT(read.bytes == written.bytes);
      RC_ASSERT(std::memcmp(read.data, written.data, read.bytes) == 0);
    }
  }));
}

TEST(SafetensorsProperties, ACutOrLongerFileIsRefused) {
  TemporaryFolder folder;
  EXPECT_TRUE(rc::check([&] {
    const Tensors tensors = any_tensors();
    write_safetensors(folder / "file", tensors.views, tensors.metadata);
    const std::string content = read_file(folder / "file");
    const bool cut = *rc::gen::arbitrary<bool>();
    overwrite(folder / "file", cut ? content.substr(0, *rc::gen::inRange<size_t>(0, content.size()))
                                   : content + *rc::gen::nonEmpty<std::string>());
    RC_ASSERT_THROWS_AS(SafetensorsFile(folder / "file"), DataError);
  }));
}

// A flipped bit may hit a name or a value, which only a checksum notices; it must not lead outside the file.
TEST(SafetensorsProperties, AFlippedBitIsRefusedOrStaysWithinTheFile) {
  TemporaryFolder folder;
  EXPECT_TRUE(rc::check([&] {
    const Tensors tensors = any_tensors();
    write_safetensors(folder / "file", tensors.views, tensors.metadata);
    std::string content = read_file(folder / "file");
    content[*rc::gen::inRange<size_t>(0, content.size())] ^= static_cast<char>(1 << *rc::gen::inRange(0, 8));
    overwrite(folder / "file", content);
    try {
      const SafetensorsFile file(folder / "file");
      size_t sum = 0;
      for (const TensorView& each : file.tensors()) sum += each.bytes;
      RC_ASSERT(sum < content.size());
    } catch (const DataError&) {
    }
  }));
}

struct Scalar {
  std::string tag;
  int64_t step = 0;
  float value = 0.0F;
  double time = 0.0;
};

// Reads an event file as TensorBoard does: frames, then the fields of a message. Other events have no tag.
class EventReader {
 public:
  explicit EventReader(std::string content) : content_(std::move(content)) {}

  bool at_end() const { return at_ == content_.size(); }
  Scalar next() {
    const auto masked = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; };
    const std::string length = take(8);
    RC_ASSERT(number<uint32_t>(take(4)) == masked(crc32c(length)));
    const std::string event = take(number<uint64_t>(length));
    RC_ASSERT(number<uint32_t>(take(4)) == masked(crc32c(event)));
    Scalar out;
    EventReader fields(event);
    fields.read_fields(out);
    return out;
  }

 private:
  template <class Number>
  static Number number(const std::string& bytes) {
    Number value{};
    RC_ASSERT(bytes.size() == sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string take(size_t size) {
    RC_ASSERT(size <= content_.size() - at_);
    at_ += size;
    return content_.substr(at_ - size, size);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  void read_fields(Scalar& out) {
    while (!at_end()) {
      const uint64_t key = varint();
      if (key == (1 << 3 | 1)) out.time = number<double>(take(8));
      if (key == (2 << 3 | 0)) out.step = static_cast<int64_t>(varint());
      if (key == (3 << 3 | 2) || key == (7 << 3 | 2)) take(varint());
      if (key == (5 << 3 | 2)) EventReader(take(varint())).read_summary(out);
    }
  }
  void read_summary(Scalar& out) {
    RC_ASSERT(varint() == (1 << 3 | 2));
    EventReader value(take(varint()));
    RC_ASSERT(at_end());
    RC_ASSERT(value.varint() == (1 << 3 | 2));
    out.tag = value.take(value.varint());
    RC_ASSERT(value.varint() == (2 << 3 | 5));
    out.value = number<float>(value.take(4));
    RC_ASSERT(value.at_end());
  }

  std::string content_;
  size_t at_ = 0;
};

TEST(EventProperties, AnyScalarsReadBack) {
  EXPECT_TRUE(rc::check([] {
    TemporaryFolder folder;
    std::vector<Scalar> written;
    std::filesystem::path path;
    {
      EventWriter writer(folder.path());
      path = writer.path();
      for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
        const Scalar each{.tag = any_text(),
                          .step = *rc::gen::inRange<int64_t>(0, int64_t{1} << 62),
                          .value = *rc::gen::arbitrary<float>(),
                          .time = *rc::gen::arbitrary<double>()};
        writer.scalar(each.tag, each.step, static_cast<double>(each.value), each.time);
        written.push_back(each);
        if (*rc::gen::inRange(0, 3) == 0) writer.flush();
      }
    }
    EventReader reader(read_file(path));
    RC_ASSERT(reader.next().tag.empty());  // the version
    for (const Scalar& each : written) {
      const Scalar read = reader.next();
      RC_ASSERT(read.tag == each.tag);
      RC_ASSERT(read.step == each.step);
      RC_ASSERT(read.value == each.value);
      RC_ASSERT(read.time == each.time);
    }
    RC_ASSERT(reader.at_end());
  }));
}

// A writer killed at any byte: whole rows are kept, a torn one is not, and the next session continues after them.
TEST(MetricsProperties, AnyCutKeepsWholeRows) {
  TemporaryFolder folder;
  EXPECT_TRUE(rc::check([&] {
    std::filesystem::remove(folder / "rows");
    std::vector<Json> rows;
    std::set<size_t> ends = {0};
    {
      MetricsLog log(folder / "rows");
      for (int64_t step = *rc::gen::inRange<int64_t>(0, 6); step > 0; --step) {
        const Json values = {{"loss", *rc::gen::arbitrary<double>()}, {"warning", any_text()}};
        log.append(step, values);
        rows.push_back({{"step", step}, {"loss", values["loss"]}, {"warning", values["warning"]}});
        ends.insert(std::filesystem::file_size(folder / "rows"));
      }
    }
    const std::string content = read_file(folder / "rows");
    const size_t cut = *rc::gen::inRange<size_t>(0, content.size() + 1);
    overwrite(folder / "rows", content.substr(0, cut));
    const auto whole = static_cast<size_t>(std::distance(ends.begin(), ends.upper_bound(cut))) - 1;
    const std::vector<Json> left = MetricsLog::read(folder / "rows");
    // A row that lacks only its line end is whole.
    RC_ASSERT(left.size() == whole || (left.size() == whole + 1 && ends.contains(cut + 1)));
    MetricsLog(folder / "rows").append(99, {{"loss", 1.0}});
    std::vector<Json> expected(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(left.size()));
    expected.push_back({{"step", 99}, {"loss", 1.0}});
    RC_ASSERT(MetricsLog::read(folder / "rows") == expected);
  }));
}

}  // namespace
}  // namespace normlab
