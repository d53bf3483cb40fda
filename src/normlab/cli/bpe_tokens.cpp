#include "normlab/cli/bpe_tokens.h"

#include <memory>

#include "normlab/base/file.h"
#include "normlab/base/text.h"
#include "normlab/data/subword_tokenizer.h"
#include "normlab/data/text_lines.h"

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

Exit encode(const TokensOptions& options) {
  const SubwordTokenizer tokenizer = SubwordTokenizer::read(options.tokenizer);
  const std::string text = input_text(options);
  std::string out;
  const auto append = [&](std::string_view part) {
    const char* between = "";
    for (const int32_t token : tokenizer.encode(part, options.input)) {
      out += between;
      out += std::to_string(token);
      between = " ";
    }
    out += '\n';
  };
  if (options.whole)
    append(text);
  else
    for_each_line(text, append);
  write_to(options, out);
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
