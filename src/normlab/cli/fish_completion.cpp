// The completion script for fish.
#include "normlab/base/text.h"
#include "normlab/cli/completion.h"

namespace normlab {
namespace {

const char* fish_action(ValueKind kind) {
  switch (kind) {
    case ValueKind::flag:
      return "";
    case ValueKind::keys:
      return " -x -a \"$__normlab_keys\"";
    case ValueKind::settings:
      return " -x -a \"(__normlab_settings)\"";
    case ValueKind::schemes:
      return " -x -a \"$__normlab_schemes\"";
    case ValueKind::recipes:
      return " -r -F -a \"(__normlab_recipes)\"";
    case ValueKind::files:
      return " -r -F";
    default:
      return " -x";
  }
}

}  // namespace

std::string fish_completion(const VerbInfo& program, const Vocabulary& words) {
  std::string out = concat(R"sh(# fish completion of normlab; made by `normlab completion fish`.
set -g __normlab_keys )sh",
                           join(words.keys, " "), "\nset -g __normlab_schemes ", join(words.schemes, " "), R"sh(
function __normlab_recipes
  for file in recipes/*.toml
    echo $file
  end
end
function __normlab_settings
  string join \n -- $__normlab_keys=
)sh");
  for (const auto& [key, list] : words.choices)
    out += concat("  string join \\n -- ", key, "=", list.size() > 1 ? concat("{", join(list, ","), "}") : list.front(),
                  "\n");
  out += R"sh(end
complete -c normlab -n __fish_use_subcommand -f
complete -c normlab -n __fish_use_subcommand -l help -d 'show this help'
complete -c normlab -n __fish_use_subcommand -l version -d 'print the versions of normlab and libtorch'
)sh";
  for (const VerbInfo& verb : program.verbs) {
    out += concat("complete -c normlab -n __fish_use_subcommand -a ", verb.name, " -d ", shell_quoted(verb.description),
                  "\n");
    for (const VerbInfo& inner : verb.verbs)
      out += concat("complete -c normlab -f -n '__fish_seen_subcommand_from ", verb.name,
                    "; and not __fish_seen_subcommand_from ", names_of(verb.verbs), "' -a ", inner.name, " -d ",
                    shell_quoted(inner.description), "\n");
  }
  for (const NamedVerb& leaf : leaves(program))
    for (const OptionInfo& option : leaf.verb->options) {
      std::string seen;
      for (const std::string& word : split(leaf.path, ' '))
        seen += concat(seen.empty() ? "" : "; and ", "__fish_seen_subcommand_from ", word);
      const ValueKind kind = kind_of(option, leaf.path);
      if (option.names.empty() && kind != ValueKind::keys && kind != ValueKind::schemes)
        continue;  // files, as by default
      std::string flags;
      for (const std::string& name : option.names)
        flags += name.starts_with("--") ? concat(" -l ", name.substr(2)) : concat(" -s ", name.substr(1));
      out += concat("complete -c normlab -n ", shell_quoted(seen), flags,
                    option.names.empty() ? replace_all(fish_action(kind), " -x", " -f") : fish_action(kind), " -d ",
                    shell_quoted(option.help), "\n");
    }
  return out;
}

}  // namespace normlab
