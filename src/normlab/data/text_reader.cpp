#include "normlab/data/text_reader.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "normlab/base/error.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr size_t block = 1 << 20;          // bytes read at once
constexpr size_t longest_line = 64 << 20;  // bytes

// The keys of an object, for a message: the first few of them.
std::string keys_of(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    if (keys.size() == 5) return join(keys, ", ") + " ...";
    keys.push_back(concat('"', key.substr(0, 40), '"'));
  }
  return keys.empty() ? "no keys" : join(keys, ", ");
}

}  // namespace

bool is_jsonl(const std::filesystem::path& path, const TextForm& form) {
  return !form.field.empty() && path.extension() == ".jsonl";
}

TextReader::TextReader(const std::filesystem::path& path, const TextForm& form)
    : file_(File::open_to_read(path)),
      field_(form.field),
      separator_(form.separator.empty() ? "\n\n" : form.separator),
      jsonl_(is_jsonl(path, form)) {}

// Reads a block more into pending_; false at the end of the file.
bool TextReader::fill() {
  pending_.erase(0, begin_);
  begin_ = 0;
  const size_t used = pending_.size();
  pending_.resize(used + block);
  const size_t count = file_.read(pending_.data() + used, block);
  pending_.resize(used + count);
  sum_.add(std::string_view(pending_).substr(used));
  bytes_read_ += static_cast<int64_t>(count);
  return count > 0;
}

void TextReader::append_document(std::string_view line, std::string& out) {
  ++line_;
  if (line.find_first_not_of(" \t\r") == line.npos) return;
  const std::string where = file_.path().string();
  const nlohmann::json value = parse_json(line);
  if (value.is_discarded())
    throw DataError(where, concat("line ", line_, " is not JSON; expected an object with the text in \"", field_,
                                  "\". Set data.field=\"\" to train on the lines themselves."));
  if (!value.is_object())
    throw DataError(where, concat("line ", line_, " is a JSON ", value.type_name(), "; expected an object."));
  const auto found = value.find(field_);
  if (found == value.end())
    throw DataError(where, concat("line ", line_, " has no \"", field_, "\"; it has ", keys_of(value),
                                  ". Name the one with the text: data.field."));
  if (!found->is_string())
    throw DataError(where,
                    concat("line ", line_, ": \"", field_, "\" is a JSON ", found->type_name(), "; expected a text."));
  const auto& document = found->get_ref<const std::string&>();
  if (document.find('\0') != document.npos)
    throw DataError(where, concat("line ", line_, ": \"", field_, "\" has a NUL character; expected text."));
  if (has_document_) out += separator_;
  out += document;
  has_document_ = true;
}

bool TextReader::read(std::string& out, size_t bytes) {
  const size_t target = out.size() + bytes;
  if (!jsonl_) {
    const size_t used = out.size();
    out.resize(target);
    size_t end = used;
    while (end < target) {
      const size_t count = file_.read(out.data() + end, target - end);
      if (count == 0) break;
      end += count;
    }
    out.resize(end);
    sum_.add(std::string_view(out).substr(used));
    bytes_read_ += static_cast<int64_t>(end - used);
    return end > used;
  }
  bool any = false;
  while (out.size() < target) {
    const size_t end = pending_.find('\n', begin_);
    if (end != pending_.npos) {
      append_document(std::string_view(pending_).substr(begin_, end - begin_), out);
      begin_ = end + 1;
      any = true;
    } else if (pending_.size() - begin_ > longest_line) {
      throw DataError(file_.path().string(), concat("line ", line_ + 1, " is longer than ", longest_line >> 20,
                                                    " MB; expected JSONL, one "
                                                    "object on each line."));
    } else if (!fill()) {
      if (begin_ == pending_.size()) return any;
      append_document(std::string_view(pending_).substr(begin_), out);
      begin_ = pending_.size();
      any = true;
    }
  }
  return any;
}

}  // namespace normlab
