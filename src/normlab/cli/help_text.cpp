#include "normlab/cli/help_text.h"

#include <algorithm>

#include "normlab/base/prose.h"
#include "normlab/base/terminal.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr size_t least_columns = 40, most_columns = 100;  // longer lines are hard to read

// A label, and its text beside it or, when it is long, below it.
std::string entry(const std::string& label, const std::string& text, size_t indent, size_t columns) {
  std::string out = concat("  ", label);
  if (columns_of(out) + 2 > indent)
    out += concat("\n", std::string(indent, ' '));
  else
    out += std::string(indent - columns_of(out), ' ');
  const std::vector<std::string> lines = wrap(text, columns - indent);
  for (size_t i = 0; i < lines.size(); ++i) out += concat(i > 0 ? "\n" + std::string(indent, ' ') : "", lines[i]);
  return out + "\n";
}

bool is_command(std::string_view line) {
  for (const std::string_view program : {"normlab ", "seq ", "sbatch "})
    if (line.starts_with(program)) return true;
  return false;
}

// The words of a command; what is in quotes stays whole.
std::vector<std::string> words_of(std::string_view command) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') quoted = !quoted;
    if (c == ' ' && !quoted)
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

// Broken so that the shell reads it as one.
std::string wrapped_command(std::string_view command, size_t columns) {
  std::string out = "  ", line;
  for (const std::string& word : words_of(command)) {
    const size_t indent = out == "  " ? 2 : 6;
    if (!line.empty() && indent + columns_of(line) + 1 + columns_of(word) + 2 > columns &&
        indent + columns_of(command) > columns) {
      out += concat(line, " \\\n      ");
      line = word;
    } else {
      line += concat(line.empty() ? "" : " ", word);
    }
  }
  return concat(out, line, "\n");
}

// Lines that begin with two spaces are commands, or a name and what it means.
std::string wrapped_footer(const std::string& footer, size_t columns) {
  std::string out;
  for (const std::string& line : split(trim(footer), '\n')) {
    if (!line.starts_with("  ")) {
      for (const std::string& part : wrap(line, columns)) out += part + "\n";
      continue;
    }
    const std::string_view inner = std::string_view(line).substr(2);
    if (is_command(inner)) {
      out += wrapped_command(inner, columns);
      continue;
    }
    const size_t gap = inner.find("  ");
    const size_t text = gap == std::string_view::npos ? gap : inner.find_first_not_of(' ', gap);
    if (text == std::string_view::npos)
      for (const std::string& part : wrap(inner, columns - 2)) out += concat("  ", part, "\n");
    else
      out += entry(std::string(inner.substr(0, gap)), std::string(inner.substr(text)), text + 2, columns);
  }
  return out;
}

template <class Item>
std::vector<std::string> groups(const std::vector<Item>& items) {
  std::vector<std::string> names;
  for (const Item& item : items)
    if (std::ranges::find(names, item.group) == names.end()) names.push_back(item.group);
  return names;
}

std::string argument_label(const OptionInfo& option) {
  return concat(option.argument, option.many ? " ..." : "",
                option.names.empty() ? "" : concat(" or ", join(option.names, ", ")));
}

std::string with_default_mark(const OptionInfo& option) {
  return option.required ? concat(option.help, option.help.empty() ? "" : "; ", "required") : option.help;
}

}  // namespace

std::vector<std::string> groups_of(const std::vector<OptionInfo>& options) { return groups(options); }
std::vector<std::string> groups_of(const std::vector<VerbInfo>& verbs) { return groups(verbs); }

std::string option_label(const OptionInfo& option) {
  return concat(join(option.names, ", "), option.value.empty() ? "" : concat(" ", option.value),
                option.many ? " ..." : "");
}

std::string usage_of(const VerbInfo& verb) {
  std::string out = "[OPTIONS]";
  for (const OptionInfo& option : verb.options) {
    if (option.argument.empty()) continue;
    const std::string name = concat(option.argument, option.many ? "..." : "");
    out += concat(" ", option.required ? name : concat("[", name, "]"));
  }
  return verb.verbs.empty() ? out : "VERB [OPTIONS]";
}

std::string help_text(const VerbInfo& verb, const std::string& path, size_t columns) {
  constexpr size_t option_indent = 26, verb_indent = 14;
  std::string out = concat(join(wrap(verb.description, columns), "\n"), "\nUsage: ", path, " ", usage_of(verb), "\n");
  const bool has_arguments =
      std::ranges::any_of(verb.options, [](const OptionInfo& option) { return !option.argument.empty(); });
  if (has_arguments) out += "\nArguments:\n";
  for (const OptionInfo& option : verb.options)
    if (!option.argument.empty())
      out += entry(argument_label(option), with_default_mark(option), option_indent, columns);
  for (const std::string& group : groups_of(verb.verbs)) {
    out += concat("\n", group, ":\n");
    for (const VerbInfo& inner : verb.verbs)
      if (inner.group == group) out += entry(inner.name, inner.description, verb_indent, columns);
  }
  for (const std::string& group : groups_of(verb.options)) {
    std::string list;
    for (const OptionInfo& option : verb.options)
      if (option.group == group && option.argument.empty())
        list += entry(option_label(option), with_default_mark(option), option_indent, columns);
    if (!list.empty()) out += concat("\n", group, ":\n", list);
  }
  if (!verb.footer.empty()) out += concat("\n", wrapped_footer(verb.footer, columns));
  return out;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string path, CLI::AppFormatMode) const {
  const auto width = static_cast<size_t>(terminal_width(STDOUT_FILENO));
  return help_text(describe(*app), path, std::clamp(width, least_columns, most_columns));
}

}  // namespace normlab
