// The manual page, and the verbs that print it and the completions.
#include <memory>

#include "normlab/base/text.h"
#include "normlab/cli/completion.h"
#include "normlab/cli/help_text.h"
#include "normlab/cli/torch_verbs.h"
#include "normlab/cli/verbs.h"

namespace normlab {
namespace {

// Text as man reads it: no line is taken for a request, and dashes can be searched for and pasted.
std::string roff(std::string text) {
  text = replace_all(replace_all(text, "\\", "\\e"), "-", "\\-");
  std::string out;
  for (const std::string& line : split(text, '\n'))
    out += concat(line.starts_with('.') || line.starts_with('\'') ? "\\&" : "", line, "\n");
  out.pop_back();
  return out;
}

std::string entry(const std::string& label, const std::string& text) {
  return concat(".TP\n.B ", roff(label), "\n", roff(text.empty() ? " " : text), "\n");
}

std::string options_of(const VerbInfo& verb) {
  std::string out;
  for (const OptionInfo& option : verb.options) {
    std::string label = option.argument;
    if (!option.names.empty()) label += concat(label.empty() ? "" : ", ", option_label(option));
    out += entry(label, option.help);
  }
  return out;
}

// Commands and definitions keep their lines.
std::string footer_of(const VerbInfo& verb) {
  std::string out;
  for (const std::string& line : split(trim(verb.footer), '\n'))
    if (!line.empty())
      out += line.starts_with("  ") ? concat(".nf\n", roff(line), "\n.fi\n") : concat(".PP\n", roff(line), "\n");
  return out;
}

std::string section_of(const VerbInfo& verb, const std::string& path) {
  std::string out = concat(".SS ", roff(concat(path, " ", usage_of(verb))), "\n", roff(verb.description), "\n",
                           options_of(verb), footer_of(verb));
  for (const VerbInfo& inner : verb.verbs) out += section_of(inner, concat(path, " ", inner.name));
  return out;
}

// All verbs with their options, also those of normlab-torch.
VerbInfo whole_program(const CLI::App& app) {
  VerbInfo program = describe(app);
  for (VerbInfo& known : torch_verb_infos())
    for (VerbInfo& verb : program.verbs)
      if (verb.name == known.name) {
        known.group = verb.group;
        verb = std::move(known);
        break;
      }
  return program;
}

}  // namespace

std::string manual_page(const VerbInfo& program) {
  std::string out =
      concat(".TH NORMLAB 1 \"\" \"normlab ", NORMLAB_VERSION, "\" \"User Commands\"\n.SH NAME\nnormlab \\- ",
             roff(program.description), "\n.SH SYNOPSIS\n.B normlab\n.I VERB\n[OPTIONS]\n.SH VERBS\n");
  for (const VerbInfo& verb : program.verbs) out += entry(verb.name, verb.description);
  out += concat(".SH OPTIONS\n", options_of(program), footer_of(program), ".SH \"OPTIONS OF THE VERBS\"\n");
  for (const VerbInfo& verb : program.verbs) out += section_of(verb, concat("normlab ", verb.name));
  return out;
}

void add_completion(CLI::App& app, Exit&) {
  auto* verb = app.add_subcommand("completion", "a script that completes verbs, options and keys in your shell");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "bash, zsh or fish")->required()->type_name("SHELL");
  verb->footer(
      "`make install` installs all three. Without it, bash reads it with `source <(normlab completion bash)`; zsh "
      "wants it as _normlab in a folder of $fpath, fish as ~/.config/fish/completions/normlab.fish.\n"
      "Example:\n"
      "  normlab completion bash > normlab.bash");
  verb->callback([shell, &app] {
    const auto script = *shell == "bash"   ? bash_completion
                        : *shell == "zsh"  ? zsh_completion
                        : *shell == "fish" ? fish_completion
                                           : nullptr;
    if (script == nullptr) throw UsageError("completion", concat("got '", *shell, "', expected bash, zsh or fish."));
    print_line(trim(script(whole_program(app), vocabulary())));
  });
}

void add_manual(CLI::App& app, Exit&) {
  auto* verb = app.add_subcommand("manual", "the manual page, as `man` reads it");
  verb->footer("`make install` installs it.\nExample:\n  normlab manual > normlab.1");
  verb->callback([&app] { print_line(trim(manual_page(whole_program(app)))); });
}

}  // namespace normlab
