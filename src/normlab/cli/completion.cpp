#include "normlab/cli/completion.h"

#include "normlab/base/text.h"
#include "normlab/config/config.h"

namespace normlab {
namespace {

// A verb, or a verb within a verb, by the words that call it: "config print".
struct NamedVerb {
  std::string path;
  const VerbInfo* verb;
};

std::vector<NamedVerb> leaves(const VerbInfo& program) {
  std::vector<NamedVerb> list;
  for (const VerbInfo& verb : program.verbs) {
    if (verb.verbs.empty()) list.push_back({verb.name, &verb});
    for (const VerbInfo& inner : verb.verbs) list.push_back({concat(verb.name, " ", inner.name), &inner});
  }
  return list;
}

std::string names_of(const std::vector<VerbInfo>& verbs) {
  std::vector<std::string> names;
  for (const VerbInfo& verb : verbs) names.push_back(verb.name);
  return join(names, " ");
}

std::string option_names(const VerbInfo& verb) {
  std::vector<std::string> names;
  for (const OptionInfo& option : verb.options)
    for (const std::string& name : option.names) names.push_back(name);
  return join(names, " ");
}

enum class Kind { none, flag, keys, settings, schemes, recipes, files };

Kind kind_of(const OptionInfo& option, const std::string& path) {
  if (option.value.empty()) return Kind::flag;
  if (option.value == "KEY=VALUE") return Kind::settings;
  if (option.value == "KEY") return Kind::keys;
  if (option.value.starts_with("SCHEME") || (path == "schemes" && !option.argument.empty())) return Kind::schemes;
  for (const std::string& name : option.names)
    if (name == "--config" && option.value == "FILE") return Kind::recipes;
  for (const char* each : {"FILE", "DIR", "STUDY", "RUN"})
    if (option.value.find(each) != std::string::npos) return Kind::files;
  return Kind::none;
}

// In single quotes, for bash, zsh and fish alike.
std::string shell_quoted(const std::string& text) { return concat("'", replace_all(text, "'", "'\\''"), "'"); }

// The text of an option as zsh's _arguments reads it.
std::string zsh_text(std::string text) {
  for (const char* each : {"\\", "[", "]", ":"}) text = replace_all(text, each, concat("\\", each));
  return replace_all(text, "'", "'\\''");
}

const char* zsh_action(Kind kind) {
  switch (kind) {
    case Kind::keys:
      return "_normlab_keys";
    case Kind::settings:
      return "_normlab_settings";
    case Kind::schemes:
      return "_normlab_schemes";
    case Kind::recipes:
      return "_normlab_recipes";
    case Kind::files:
      return "_files";
    default:
      return " ";
  }
}

// '(-c --config)'{-c,--config}'[text]:FILE:_files'
std::string zsh_option(const OptionInfo& option, const std::string& path) {
  const Kind kind = kind_of(option, path);
  const std::string value = kind == Kind::flag ? "" : concat(":", zsh_text(option.value), ":", zsh_action(kind));
  if (option.names.empty())
    return concat("'", option.many ? "*" : "", ":", zsh_text(option.argument), ":", zsh_action(kind), "'");
  std::string out;
  for (const std::string& name : option.names)
    out += concat(out.empty() ? "" : " ", "'", option.many ? "*" : concat("(", join(option.names, " "), ")"), name, "[",
                  zsh_text(option.help), "]", value, "'");
  if (!option.argument.empty()) out += concat(" ':", zsh_text(option.argument), ":", zsh_action(kind), "'");
  return out;
}

const char* fish_action(Kind kind) {
  switch (kind) {
    case Kind::flag:
      return "";
    case Kind::keys:
      return " -x -a \"$__normlab_keys\"";
    case Kind::settings:
      return " -x -a \"(__normlab_settings)\"";
    case Kind::schemes:
      return " -x -a \"$__normlab_schemes\"";
    case Kind::recipes:
      return " -r -F -a \"(__normlab_recipes)\"";
    case Kind::files:
      return " -r -F";
    default:
      return " -x";
  }
}

}  // namespace

Vocabulary vocabulary() {
  Vocabulary words;
  Config config;
  const FieldList list = fields(config);
  for (const Field& field : list.fields()) {
    words.keys.push_back(field.key);
    constexpr std::string_view one_of = "one of ";
    if (field.key != "norm.scheme" && field.expected.starts_with(one_of))
      words.choices.push_back({field.key, split(replace_all(field.expected.substr(one_of.size()), ", ", ","), ',')});
    else if (field.expected == "true or false")
      words.choices.push_back({field.key, {"true", "false"}});
  }
  for (const NormScheme& row : catalogue()) words.schemes.push_back(row.name);
  words.choices.push_back({"norm.scheme", words.schemes});
  return words;
}

std::string bash_completion(const VerbInfo& program, const Vocabulary& words) {
  std::string groups, options, kinds, values;
  for (const VerbInfo& verb : program.verbs)
    if (!verb.verbs.empty())
      groups += concat("    ", verb.name, ") inner=", shell_quoted(names_of(verb.verbs)), " ;;\n");
  for (const NamedVerb& leaf : leaves(program)) {
    options += concat("    ", shell_quoted(leaf.path), ") options=", shell_quoted(option_names(*leaf.verb)), " ;;\n");
    for (const OptionInfo& option : leaf.verb->options) {
      const Kind kind = kind_of(option, leaf.path);
      const char* wanted = kind == Kind::settings  ? "settings"
                           : kind == Kind::keys    ? "keys"
                           : kind == Kind::schemes ? "schemes"
                           : kind == Kind::recipes ? "recipes"
                           : kind == Kind::flag    ? "flag"
                                                   : "files";
      for (const std::string& name : option.names)
        kinds += concat("    ", shell_quoted(concat(leaf.path, " ", name)), ") kind=", wanted, " ;;\n");
      if (!option.argument.empty() && (kind == Kind::keys || kind == Kind::schemes))
        kinds += concat("    ", shell_quoted(leaf.path + " "), ") kind=", wanted, " ;;\n");
    }
  }
  for (const auto& [key, list] : words.choices)
    values += concat("    ", shell_quoted(key), ") words=", shell_quoted(join(list, " ")), " ;;\n");
  return concat(R"sh(# bash completion of normlab; made by `normlab completion bash`.
_normlab_recipes() {
  local folder
  for folder in recipes "$(dirname "$(command -v normlab 2>/dev/null)")/../share/normlab/recipes"; do
    [[ -d $folder ]] && compgen -f -X '!*.toml' -- "$folder/"
  done
}

_normlab() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}
  local inner='' options='' kind=files words='' option='' key='' place
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W )sh",
                shell_quoted(concat(names_of(program.verbs), " help --help --version")), R"sh( -- "$current"))
    return
  fi
  case $verb in
)sh",
                groups, R"sh(  esac
  if [[ -n $inner ]]; then
    if ((COMP_CWORD == 2)); then
      COMPREPLY=($(compgen -W "$inner --help" -- "$current"))
      return
    fi
    verb="$verb ${COMP_WORDS[2]}"
  fi
  case $verb in
)sh",
                options, R"sh(  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  # Readline takes the equals sign of key=value for a word.
  if [[ $current == '=' ]]; then
    key=$before current=''
  elif [[ $before == '=' ]]; then
    key=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [[ -n $key ]]; then
    case $key in
)sh",
                values, R"sh(    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    return
  fi
  for ((place = COMP_CWORD - 1; place > 1; --place)); do
    if [[ ${COMP_WORDS[place]} == -* ]]; then
      option=${COMP_WORDS[place]}
      break
    fi
  done
  case "$verb $option" in
)sh",
                kinds, R"sh(  esac
  # Only --set and lists take more than one value.
  if [[ ($kind == flag || $kind == recipes) && -n $option && $before != "$option" ]]; then kind=files; fi
  case $kind in
    settings)
      COMPREPLY=($(compgen -S = -W )sh",
                shell_quoted(join(words.keys, " ")), R"sh( -- "$current"))
      compopt -o nospace 2>/dev/null
      ;;
    keys) COMPREPLY=($(compgen -W )sh",
                shell_quoted(join(words.keys, " ")), R"sh( -- "$current")) ;;
    schemes) COMPREPLY=($(compgen -W )sh",
                shell_quoted(join(words.schemes, " ")), R"sh( -- "$current")) ;;
    recipes) COMPREPLY=($(compgen -W "$(_normlab_recipes)" -- "$current")) ;;
  esac
}
complete -o default -F _normlab normlab
)sh");
}

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
      const Kind kind = kind_of(option, leaf.path);
      if (option.names.empty() && kind != Kind::keys && kind != Kind::schemes) continue;  // files, as by default
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
