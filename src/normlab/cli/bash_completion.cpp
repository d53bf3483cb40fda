// The completion script for bash.
#include "normlab/base/text.h"
#include "normlab/cli/completion.h"

namespace normlab {
namespace {

std::string option_names(const VerbInfo& verb) {
  std::vector<std::string> names;
  for (const OptionInfo& option : verb.options)
    for (const std::string& name : option.names) names.push_back(name);
  return join(names, " ");
}

}  // namespace

std::string bash_completion(const VerbInfo& program, const Vocabulary& words) {
  std::string groups, options, kinds, values;
  for (const VerbInfo& verb : program.verbs)
    if (!verb.verbs.empty())
      groups += concat("    ", verb.name, ") inner=", shell_quoted(names_of(verb.verbs)), " ;;\n");
  for (const NamedVerb& leaf : leaves(program)) {
    options += concat("    ", shell_quoted(leaf.path), ") options=", shell_quoted(option_names(*leaf.verb)), " ;;\n");
    for (const OptionInfo& option : leaf.verb->options) {
      const ValueKind kind = kind_of(option, leaf.path);
      const char* wanted = kind == ValueKind::settings  ? "settings"
                           : kind == ValueKind::keys    ? "keys"
                           : kind == ValueKind::schemes ? "schemes"
                           : kind == ValueKind::recipes ? "recipes"
                           : kind == ValueKind::flag    ? "flag"
                                                        : "files";
      for (const std::string& name : option.names)
        kinds += concat("    ", shell_quoted(concat(leaf.path, " ", name)), ") kind=", wanted, " ;;\n");
      if (!option.argument.empty() && (kind == ValueKind::keys || kind == ValueKind::schemes))
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

}  // namespace normlab
