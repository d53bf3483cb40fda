// TensorBoard event files against bytes made by the tensorboard package.
#include "normlab/record/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include "normlab/base/error.h"
#include "normlab/base/text.h"
#include "sandbox.h"

namespace normlab {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    out += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

// The messages of a file's frames; stops the test when a length or checksum is wrong.
std::vector<std::string> events_in(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  const auto number_at = [&](size_t at, auto value) {
    std::memcpy(&value, content.data() + at, sizeof value);
    return value;
  };
  const auto masked = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; };
  std::vector<std::string> events;
  for (size_t at = 0; at < content.size();) {
    const size_t length = number_at(at, uint64_t{});
    if (at + 16 + length > content.size()) throw std::runtime_error("frame beyond the end");
    events.push_back(content.substr(at + 12, length));
    EXPECT_EQ(number_at(at + 8, uint32_t{}), masked(crc32c(content.substr(at, 8))));
    EXPECT_EQ(number_at(at + 12 + length, uint32_t{}), masked(crc32c(events.back())));
    at += 16 + length;
  }
  return events;
}

TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

TEST(EventWriter, StartsWithTheFileVersion) {
  TemporaryFolder folder;
  const EventWriter writer(folder.path());
  const auto events = events_in(writer.path());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(hex(events[0].substr(9)),
            "1000"
            "1a0d" +
                hex("brain.Event:2"));
}

TEST(EventWriter, ScalarHasTheBytesOfTheTensorboardPackage) {
  TemporaryFolder folder;
  EventWriter writer(folder.path());
  const size_t start = read_file(writer.path()).size();
  writer.scalar("val/loss", 300, 1.875, 1700000000.25);
  EXPECT_EQ(read_file(writer.path()).size(), start);
  writer.flush();
  EXPECT_EQ(hex(read_file(writer.path()).substr(start)),
            "1f00000000000000514b44180900001040fc54d94110ac022a110a0f0a0876616c2f6c6f7373150000f03f9f593cbc");
}

TEST(EventWriter, SessionStartMarksAResume) {
  TemporaryFolder folder;
  EventWriter writer(folder.path());
  writer.session_start(300);
  writer.flush();
  const auto events = events_in(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(hex(events[1].substr(9)), "10ac023a020801");
}

TEST(EventWriter, DestructorFlushesAndLongTagsSurvive) {
  TemporaryFolder folder;
  std::filesystem::path path;
  {
    EventWriter writer(folder.path());
    path = writer.path();
    for (int i = 0; i < 100; ++i) writer.scalar(std::string(1000, 'x'), i, std::nan(""), 0);
  }
  EXPECT_EQ(events_in(path).size(), 101u);
}

TEST(EventWriter, LaterFilesSortLater) {
  TemporaryFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) names.push_back(EventWriter(folder.path()).path().filename().string());
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  const auto parts = split(names[0], '.');
  ASSERT_GE(parts.size(), 7u);
  EXPECT_EQ(parts[3].size(), 10u);
  EXPECT_EQ(parts[parts.size() - 2], concat(::getpid()));
}

TEST(EventWriter, FullDiskIsAnError) {
  TemporaryFolder folder;
  const int status = run_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    EventWriter writer(folder.path());
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      for (int i = 0; i < 100; ++i) writer.scalar("loss", i, 1, 0);
      writer.flush();
    } catch (const Error& error) {
      return 0;
    }
    return 1;
  });
  EXPECT_TRUE(exited_with(status, 0));
  EXPECT_THROW(EventWriter(folder / "missing"), Error);
}

}  // namespace
}  // namespace normlab
