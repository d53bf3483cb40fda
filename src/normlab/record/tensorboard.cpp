// TensorBoard event files: TFRecord frames (length, its checksum, data, its checksum) around protobuf messages, of
// which only the few fields that TensorBoard reads are encoded:
//   Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog log = 7; }
//   Summary { repeated Value value = 1; }   Value { string tag = 1; float simple_value = 2; }
//   SessionLog { Status status = 1; }       with Status START = 1
#include "normlab/record/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <climits>
#include <utility>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view file_prefix = "events.out.tfevents.";
constexpr size_t buffer_limit = 1 << 16;

constexpr std::array<uint32_t, 256> crc_table = [] {
  constexpr uint32_t castagnoli = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? castagnoli : 0);
    table[i] = rest;
  }
  return table;
}();

// TFRecord's checksum: rotated and shifted, since a checksum of data that holds checksums is weak.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8U; }

template <class Number>
void append_raw(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

enum class Wire { varint = 0, eight_bytes = 1, sized = 2, four_bytes = 5 };

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}
void append_key(std::string& out, unsigned field, Wire wire) {
  append_varint(out, field << 3 | static_cast<unsigned>(wire));
}
void append_sized(std::string& out, unsigned field, std::string_view content) {
  append_key(out, field, Wire::sized);
  append_varint(out, content.size());
  out += content;
}

std::string event_start(double wall_time, int64_t step) {
  std::string event;
  append_key(event, 1, Wire::eight_bytes);
  append_raw(event, wall_time);
  append_key(event, 2, Wire::varint);
  append_varint(event, static_cast<uint64_t>(step));
  return event;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// TensorBoard reads files in the order of their names, so a new one is named later than all that are there.
fs::path new_file_name(const fs::path& folder) {
  auto time = static_cast<long long>(seconds_now());
  std::error_code unreadable;  // creating the file says so
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(file_prefix)) continue;
    const auto earlier = parse_integer(split(name.substr(file_prefix.size()), '.').front());
    if (earlier && *earlier >= time && *earlier < 9'999'999'999) time = *earlier + 1;
  }
  char host[HOST_NAME_MAX + 1] = "unknown";
  ::gethostname(host, sizeof host - 1);
  return folder / concat(file_prefix, time, ".", host, ".", ::getpid(), ".0");
}

File create_file(const fs::path& folder) {
  const fs::path name = new_file_name(folder);
  return File::create(name, name);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ crc_table[(crc ^ static_cast<unsigned char>(byte)) & 255];
  return ~crc;
}

EventWriter::EventWriter(const fs::path& folder) : file_(create_file(folder)) {
  std::string event = event_start(seconds_now(), 0);
  append_sized(event, 3, "brain.Event:2");
  add(event);
  flush();
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error&) {  // whoever needs to know of a full disk has called flush()
  }
}

void EventWriter::session_start(int64_t step) {
  std::string log;
  append_key(log, 1, Wire::varint);
  append_varint(log, 1);
  std::string event = event_start(seconds_now(), step);
  append_sized(event, 7, log);
  add(event);
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value, double wall_time) {
  std::string entry;
  append_sized(entry, 1, tag);
  append_key(entry, 2, Wire::four_bytes);
  append_raw(entry, static_cast<float>(value));
  std::string summary;
  append_sized(summary, 1, entry);
  std::string event = event_start(wall_time, step);
  append_sized(event, 5, summary);
  add(event);
}

void EventWriter::add(std::string_view event) {
  std::string length;
  append_raw(length, static_cast<uint64_t>(event.size()));
  buffer_ += length;
  append_raw(buffer_, masked_crc(length));
  buffer_ += event;
  append_raw(buffer_, masked_crc(event));
  if (buffer_.size() > buffer_limit) flush();
}

void EventWriter::flush() {
  const std::string ready = std::exchange(buffer_, {});
  file_.write(ready);
}

}  // namespace normlab
