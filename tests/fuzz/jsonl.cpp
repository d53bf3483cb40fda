// JSONL as text: the documents of the lines, joined; the same in one piece and in parts.
#include "fuzz/fuzzers.h"
#include "fuzz/input.h"
#include "normlab/data/text_parts.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

// A file in memory has no name, so a link gives it the ending that says what it is.
class JsonlFile {
 public:
  explicit JsonlFile(const std::string& content) : file_(content) {
    std::filesystem::remove(link_);
    std::filesystem::create_symlink(file_.path(), link_);
  }
  ~JsonlFile() { std::filesystem::remove(link_); }
  JsonlFile(const JsonlFile&) = delete;
  JsonlFile& operator=(const JsonlFile&) = delete;
  const std::filesystem::path& path() const { return link_; }

 private:
  MemoryFile file_;
  std::filesystem::path link_ = std::filesystem::temp_directory_path() / concat("fuzz-", ::getpid(), ".jsonl");
};

}  // namespace

void fuzz_jsonl(const uint8_t* bytes, size_t size) {
  const auto inputs = parts_of(bytes, size, 3);  // field, separator, lines
  const TextForm form{.field = inputs[0].empty() ? "text" : inputs[0], .separator = inputs[1]};
  const JsonlFile file(inputs[2]);
  std::string whole, joined, byte_wise;
  const bool read = accepts([&] {
    TextReader reader(file.path(), form);
    while (reader.read(whole, 1 << 20)) {
    }
  });
  require(!read || first_invalid_utf8(inputs[1]) || !first_invalid_utf8(whole), "documents are UTF-8");
  const bool in_parts = accepts([&] {
    TextReader reader(file.path(), form);
    TextParts parts(reader, cut_between_characters);
    for (TextParts::Part part; parts.next(part);) joined += part.text;
  });
  require(read == in_parts && (!read || whole == joined), "parts make up the text");
  const bool one_by_one = accepts([&] {
    TextReader reader(file.path(), form);
    while (reader.read(byte_wise, 1)) {
    }
  });
  require(read == one_by_one && (!read || whole == byte_wise), "the size of the steps does not matter");
}

}  // namespace normlab
