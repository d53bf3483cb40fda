#include "normlab/cli/bpe_tokens.h"

#include <memory>
#include <optional>

#include "normlab/base/file.h"
#include "normlab/base/staging.h"
#include "normlab/base/text.h"
#include "normlab/cli/signals.h"
#include "normlab/data/subword_tokenizer.h"
#include "normlab/data/text_lines.h"
#include "normlab/data/text_parts.h"
#include "normlab/data/utf8.h"

namespace normlab {
namespace {

struct TokensOptions {
  std::string tokenizer, input = "-", output = "-";
  bool whole = false;
};

// Calls visit(line) for each line, without its line feed; a last line without one counts too.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

std::string input_text(const TokensOptions& options) {
  return read_text_file(options.input == "-" ? "/dev/stdin" : options.input);
}

void write_to(const TokensOptions& options, const std::string& out) {
  if (options.output == "-")
    write_output(out);
  else
    write_file_atomically(options.output, out);
}

void require_utf8(const TextParts::Part& part) {
  if (const auto offset = first_invalid_utf8(part.text))
    throw DataError(part.where, concat("is not valid UTF-8 at byte ", *offset,
                                       "; expected UTF-8 text, plain or gzip. Convert it to UTF-8."));
}

std::string numbers(const std::vector<int32_t>& tokens) {
  std::string out;
  for (const int32_t token : tokens) append(out, token), out += ' ';
  if (!out.empty()) out.pop_back();
  return out;
}

// The parts of the input as they come; of a gzip file, which is unpacked in memory, all at once.
class InputParts {
 public:
  InputParts(const std::string& input, FindCut cut)
      : reader_(input == "-" ? "/dev/stdin" : input, {.field = ""}),
        parts_(reader_, std::move(cut), beginning(input)) {}
  TextParts& parts() { return parts_; }

 private:
  std::string beginning(const std::string& input) {
    std::string text;
    reader_.read(text, 1 << 16);
    if (text.empty()) throw DataError(input, "is empty; expected lines of text.");
    if (!text.starts_with("\x1f\x8b")) return text;
    while (reader_.read(text, 1 << 20)) {
    }
    return gunzip(text, input);
  }
  TextReader reader_;
  TextParts parts_;
};

Exit encode(const TokensOptions& options) {
  const Tokenizer tokenizer = Tokenizer::read_subwords(options.tokenizer);
  const SubwordTokenizer* subwords = tokenizer.subwords();
  if (!subwords) throw DataError(options.tokenizer, "is not a tokenizer.json of subwords.");
  InputParts input(options.input, options.whole ? cut_for(tokenizer) : cut_after_line);
  const auto of_lines = [&](const TextParts::Part& part, BpeModel::Cache& cache) {
    require_utf8(part);
    std::string out;
    for_each_line(part.text, [&](std::string_view line) {
      out += numbers(subwords->encode(line, part.where, SubwordTokenizer::Part::first, cache)) + '\n';
    });
    return out;
  };
  const auto of_text = [&](const TextParts::Part& part, BpeModel::Cache& cache) {
    require_utf8(part);
    return numbers(encode_part(tokenizer, part, cache));
  };
  std::optional<StagedFile> file;
  if (options.output != "-") file.emplace(options.output);
  const auto write = [&](std::string_view out) { file ? file->write(out) : write_output(out); };
  const char* between = "";
  const auto write_part = [&](std::string_view out) {
    if (out.empty()) return;
    if (options.whole) write(between), between = " ";
    write(out);
  };
  const auto watch = [](int64_t) {
    if (stop_requested()) throw Error("bpe encode", "stopped by a signal.", Exit::stopped);
  };
  if (options.whole)
    work_on_parts(input.parts(), {.make = of_text, .take = write_part, .watch = watch});
  else
    work_on_parts(input.parts(), {.make = of_lines, .take = write_part, .watch = watch});
  if (options.whole) write("\n");
  if (file) file->commit();
  return Exit::done;
}

Exit decode(const TokensOptions& options) {
  const SubwordTokenizer tokenizer = SubwordTokenizer::read(options.tokenizer);
  const std::string text = input_text(options);
  std::string out;
  for_each_line(text, [&](std::string_view line) {
    std::vector<int32_t> tokens;
    for (const std::string& word : split(line, ' ')) {
      if (word.empty()) continue;
      const auto token = parse_integer(word);
      if (!token || *token < 0 || *token >= tokenizer.vocab_size())
        throw DataError(options.input,
                        concat("got '", word, "', expected token ids from 0 to ", tokenizer.vocab_size() - 1, "."));
      tokens.push_back(static_cast<int32_t>(*token));
    }
    out += tokenizer.decode(tokens);
    out += '\n';
  });
  write_to(options, out);
  return Exit::done;
}

std::shared_ptr<TokensOptions> add_files(CLI::App& verb, const char* input) {
  auto options = std::make_shared<TokensOptions>();
  verb.add_option("-t,--tokenizer", options->tokenizer, "tokenizer.json of Hugging Face")
      ->required()
      ->type_name("FILE");
  verb.add_option("-i,--input", options->input, concat(input, "; default: standard input"))->type_name("FILE");
  verb.add_option("-o,--output", options->output, "default: standard output")->type_name("FILE");
  return options;
}

}  // namespace

void add_bpe_encode(CLI::App& verb, Exit& exit) {
  auto* encode_verb = verb.add_subcommand("encode", "token ids of each line, as a tokenizer.json makes them");
  auto options = add_files(*encode_verb, "text, plain or gzip");
  encode_verb->add_flag("--whole", options->whole, "the text as one, with its line breaks, as a training reads it");
  encode_verb->footer("Example:\n  normlab bpe encode --tokenizer tokenizer.json < my.txt > my.ids");
  encode_verb->callback([options, &exit] { exit = encode(*options); });
}

void add_bpe_decode(CLI::App& verb, Exit& exit) {
  auto* decode_verb = verb.add_subcommand("decode", "text of lines of token ids");
  auto options = add_files(*decode_verb, "lines of ids");
  decode_verb->footer("Example:\n  normlab bpe decode --tokenizer tokenizer.json < my.ids");
  decode_verb->callback([options, &exit] { exit = decode(*options); });
}

}  // namespace normlab
