// TextReader: the text of a file, piece by piece: as it stands, or the documents of JSONL joined into one text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "normlab/base/file.h"
#include "normlab/base/sha256.h"
#include "normlab/base/stop.h"

namespace normlab {

// How a text is read.
struct TextForm {
  std::string field = "text";             // of JSONL: where each line has its document; empty: lines are plain text
  std::string separator = "";             // between documents; empty: an empty line
  int64_t in_memory = int64_t{64} << 20;  // a file of more bytes is tokenised into the cache
  int vocab_size = 0;                     // 0: of the tokeniser, or of the largest token id
  StopToken stop = never_stop;            // ends a long tokenisation
};

// Whether the file is read as JSONL: by its name.
bool is_jsonl(const std::filesystem::path& path, const TextForm& form);

class TextReader {
 public:
  TextReader(const std::filesystem::path& path, const TextForm& form);

  // Appends the next part of the text, some `bytes` of it; false when there is no more. DataError, with the line, for
  // what is no JSON object, has no such field or a field that is not text.
  bool read(std::string& out, size_t bytes);

  int64_t bytes_read() const { return bytes_read_; }  // of the file
  bool jsonl() const { return jsonl_; }
  int64_t lines_read() const { return line_; }  // of JSONL
  std::string name() const { return file_.path().string(); }
  std::string sha256() { return sum_.hex(); }  // of the file, once all of it was read

 private:
  bool fill();
  void append_document(std::string_view line, std::string& out);

  File file_;
  std::string field_, separator_;
  bool jsonl_ = false;
  Sha256 sum_;
  std::string pending_;  // of JSONL: what follows the last whole line
  size_t begin_ = 0;     // in pending_
  int64_t bytes_read_ = 0, line_ = 0;
  bool has_document_ = false;
};

}  // namespace normlab
