// Lines of text files: plain, gzip made of the input, and the input as a gzip file of its own.
#include "normlab/data/text_lines.h"

#include <zlib.h>

#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

void fuzz_text_lines(const uint8_t* bytes, size_t size) {
  const std::string text = text_of(bytes, size);
  const MemoryFile plain(text), packed(gzip(text)), twice(gzip(text) + gzip(text));
  const bool is_text = !text.empty() && !first_invalid_utf8(text);
  std::vector<std::string> lines;
  const bool read = accepts([&] { lines = read_lines(plain.path()); });
  require(!is_text || read, "a UTF-8 text is read");
  if (is_text) {
    require(join(lines, "\n") + (text.back() == '\n' ? "\n" : "") == text, "the lines make up the text");
    require(read_lines(packed.path()) == lines, "gzip changes no line");
    require(read_text_file(twice.path()) == text + text, "the members of a gzip file follow one another");
  }
  accepts([&] { gunzip(text, "input"); });
}

}  // namespace normlab
