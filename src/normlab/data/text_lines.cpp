// Lines of a text file: read as a whole, unpacked by zlib where it starts as gzip files do.
#include "normlab/data/text_lines.h"

#include <zlib.h>

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

constexpr std::string_view gzip_magic = "\x1f\x8b";

// An inflating stream that is released at the end of its scope.
class Inflater {
 public:
  explicit Inflater(std::string_view packed) {
    constexpr int window_bits_gzip = 15 + 16;
    if (inflateInit2(&stream_, window_bits_gzip) != Z_OK) throw Error("gzip", "zlib cannot start.");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    rest_ = packed.size();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Appends the next part of one member's content; zlib's status.
  int step(std::string& out) {
    feed();
    char buffer[1 << 16];
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = sizeof buffer;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    out.append(buffer, sizeof buffer - stream_.avail_out);
    return status;
  }
  bool at_end() const { return rest_ == 0 && stream_.avail_in == 0; }
  void next_member() { inflateReset(&stream_); }

 private:
  // zlib counts its input in 32 bits.
  void feed() {
    if (stream_.avail_in > 0) return;
    stream_.avail_in = static_cast<uInt>(std::min<size_t>(rest_, 1U << 30));
    rest_ -= stream_.avail_in;
  }
  z_stream stream_{};
  size_t rest_ = 0;
};

void require_utf8_lines(std::string_view text, const std::string& where) {
  const auto offset = first_invalid_utf8(text);
  if (!offset) return;
  const std::string_view before = text.substr(0, *offset);
  const size_t line_start = before.rfind('\n') + 1;  // 0 in the first line
  throw DataError(where, concat("is not valid UTF-8 at line ", std::ranges::count(before, '\n') + 1, ", byte ",
                                *offset - line_start,
                                " of the line; expected UTF-8 text, plain or gzip. Convert it to "
                                "UTF-8."));
}

}  // namespace

std::string gunzip(std::string_view packed, const std::string& where) {
  // Text packs to a third, tables to a twentieth; a file made to fill the memory packs to a thousandth.
  constexpr size_t harmless = 64 << 20, most_per_byte = 200;
  Inflater inflater(packed);
  std::string out;
  while (true) {
    const int status = inflater.step(out);
    if (out.size() > harmless && out.size() / most_per_byte > packed.size())
      throw DataError(where, concat("unpacks to more than ", most_per_byte,
                                    " times its size, as no text does. Unpack it yourself if that is right."));
    if (status == Z_STREAM_END && inflater.at_end()) return out;
    if (status == Z_STREAM_END)
      inflater.next_member();
    else if (status != Z_OK)
      throw DataError(where, concat("is a damaged gzip file: ",
                                    status == Z_DATA_ERROR ? "wrong content" : "it is cut off", ". Fetch it again."));
  }
}

std::string read_text_file(const std::filesystem::path& path) {
  const std::string where = path.string();
  std::string text = read_file(path);
  if (text.starts_with(gzip_magic)) text = gunzip(text, where);
  if (text.empty()) throw DataError(where, "is empty; expected lines of text.");
  require_utf8_lines(text, where);
  return text;
}

std::vector<std::string> read_first_lines(const std::filesystem::path& path, size_t bytes) {
  File file = File::open_to_read(path);
  std::string text(bytes, '\0');
  size_t used = 0;
  while (const size_t count = file.read(text.data() + used, text.size() - used)) used += count;
  text.resize(used);
  if (text.starts_with(gzip_magic)) {
    const std::string packed = std::move(text);
    text.clear();
    Inflater inflater(packed);
    while (text.size() < bytes && inflater.step(text) == Z_OK) {
    }
  }
  if (text.size() >= bytes) text.resize(text.rfind('\n', bytes) + 1);  // the last line is cut off
  if (text.empty()) throw DataError(path.string(), "is empty; expected lines of text.");
  require_utf8_lines(text, path.string());
  if (text.back() == '\n') text.pop_back();
  return split(text, '\n');
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::string text = read_text_file(path);
  if (text.back() == '\n') text.pop_back();
  return split(text, '\n');
}

}  // namespace normlab
