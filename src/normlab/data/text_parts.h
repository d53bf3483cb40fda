// A text that is too large for the memory, part by part, and work on the parts by all cores.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/bpe_model.h"
#include "normlab/data/text_reader.h"
#include "normlab/data/tokenizer.h"

namespace normlab {

// The last place at which a text can be cut in two; 0 when there is none yet.
using FindCut = std::function<size_t(std::string_view text)>;
size_t cut_between_characters(std::string_view text);
size_t cut_after_line(std::string_view text);
FindCut cut_for(const Tokenizer& tokenizer);  // where the tokens do not depend on what stands on the other side

class TextParts {
 public:
  // `already`: text that was read before.
  TextParts(TextReader& reader, FindCut cut, std::string already = "")
      : reader_(reader), cut_(std::move(cut)), pending_(std::move(already)) {}

  struct Part {
    std::string text;
    std::string where;  // for messages: the file, and where in it the part begins
    bool first = false;
  };
  bool next(Part& part);  // false: there is no more
  int64_t bytes_read() const { return reader_.bytes_read(); }

 private:
  std::string place() const;

  TextReader& reader_;
  FindCut cut_;
  std::string pending_;
  int64_t offset_ = 0, lines_ = 0;  // before pending_: bytes of the text, lines of JSONL
  bool done_ = false;
};

struct PartWork {
  // What becomes of a part; on any thread, each with its own cache.
  std::function<std::string(const TextParts::Part& part, BpeModel::Cache& cache)> make;
  std::function<void(std::string_view made)> take;                 // in the order of the text
  std::function<void(int64_t bytes_read)> watch = [](int64_t) {};  // now and then
};
void work_on_parts(TextParts& parts, const PartWork& work);

// The tokens of a part of the text.
std::vector<int32_t> encode_part(const Tokenizer& tokenizer, const TextParts::Part& part, BpeModel::Cache& cache);

}  // namespace normlab
