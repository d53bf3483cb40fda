// The completion script for zsh.
#include "normlab/base/text.h"
#include "normlab/cli/completion.h"

namespace normlab {
namespace {

// The text of an option as zsh's _arguments reads it.
std::string zsh_text(std::string text) {
  for (const char* each : {"\\", "[", "]", ":"}) text = replace_all(text, each, concat("\\", each));
  return replace_all(text, "'", "'\\''");
}

const char* zsh_action(ValueKind kind) {
  switch (kind) {
    case ValueKind::keys:
      return "_normlab_keys";
    case ValueKind::settings:
      return "_normlab_settings";
    case ValueKind::schemes:
      return "_normlab_schemes";
    case ValueKind::recipes:
      return "_normlab_recipes";
    case ValueKind::files:
      return "_files";
    default:
      return " ";
  }
}

// '(-c --config)'{-c,--config}'[text]:FILE:_files'
std::string zsh_option(const OptionInfo& option, const std::string& path) {
  const ValueKind kind = kind_of(option, path);
  const std::string value = kind == ValueKind::flag ? "" : concat(":", zsh_text(option.value), ":", zsh_action(kind));
  if (option.names.empty())
    return concat("'", option.many ? "*" : "", ":", zsh_text(option.argument), ":", zsh_action(kind), "'");
  std::string out;
  for (const std::string& name : option.names)
    out += concat(out.empty() ? "" : " ", "'", option.many ? "*" : concat("(", join(option.names, " "), ")"), name, "[",
                  zsh_text(option.help), "]", value, "'");
  if (!option.argument.empty()) out += concat(" ':", zsh_text(option.argument), ":", zsh_action(kind), "'");
  return out;
}

}  // namespace

std::string zsh_completion(const VerbInfo& program, const Vocabulary& words) {
  std::string verbs, inner, cases;
  for (const VerbInfo& verb : program.verbs) {
    verbs += concat("    '", verb.name, ":", zsh_text(verb.description), "'\n");
    if (verb.verbs.empty()) continue;
    std::string list;
    for (const VerbInfo& each : verb.verbs) list += concat(" '", each.name, ":", zsh_text(each.description), "'");
    inner += concat("    ", verb.name, ") inner=(", list, " ) ;;\n");
  }
  for (const NamedVerb& leaf : leaves(program)) {
    cases += concat("    ", shell_quoted(leaf.path), ")\n      _arguments");
    for (const OptionInfo& option : leaf.verb->options) cases += concat(" \\\n        ", zsh_option(option, leaf.path));
    cases += " ;;\n";
  }
  std::string values;
  for (const auto& [key, list] : words.choices)
    values += concat("      ", shell_quoted(key), ") compadd -- ", join(list, " "), " ;;\n");
  return concat(R"sh(#compdef normlab
# zsh completion of normlab; made by `normlab completion zsh`.
_normlab_keys() { compadd -- )sh",
                join(words.keys, " "), R"sh( }
_normlab_schemes() { compadd -- )sh",
                join(words.schemes, " "), R"sh( }
_normlab_recipes() {
  compadd -- recipes/*.toml(N) ${commands[normlab]:h}/../share/normlab/recipes/*.toml(N)
  _files
}
_normlab_settings() {
  if compset -P '*='; then
    case ${IPREFIX%=} in
)sh",
                values, R"sh(    esac
  else
    compadd -S = -- )sh",
                join(words.keys, " "), R"sh(
  fi
}
_normlab() {
  local -a verbs inner
  verbs=(
)sh",
                verbs, R"sh(  )
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  shift words
  ((CURRENT--))
  local verb=$words[1]
  case $verb in
)sh",
                inner, R"sh(  esac
  if (($#inner)); then
    if ((CURRENT == 2)); then
      _describe verb inner
      return
    fi
    shift words
    ((CURRENT--))
    verb="$verb $words[1]"
  fi
  case $verb in
)sh",
                cases, R"sh(  esac
}
if [[ $funcstack[1] == _normlab ]]; then _normlab "$@"; else compdef _normlab normlab; fi
)sh");
}

}  // namespace normlab
