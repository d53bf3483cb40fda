// Completion of the command line by bash, zsh and fish, made from the verbs and the catalogues.
#pragma once

#include <string>

#include "normlab/cli/verb_info.h"

namespace normlab {

// What can follow an option or stand in a place.
struct Vocabulary {
  std::vector<std::string> keys, schemes;
  std::vector<std::pair<std::string, std::vector<std::string>>> choices;  // the values of keys that have a fixed set
};
Vocabulary vocabulary();

std::string bash_completion(const VerbInfo& program, const Vocabulary& words);
std::string zsh_completion(const VerbInfo& program, const Vocabulary& words);
std::string fish_completion(const VerbInfo& program, const Vocabulary& words);

// A verb, or a verb within a verb, by the words that call it: "config print".
struct NamedVerb {
  std::string path;
  const VerbInfo* verb;
};
std::vector<NamedVerb> leaves(const VerbInfo& program);
std::string names_of(const std::vector<VerbInfo>& verbs);  // with spaces between them
std::string shell_quoted(const std::string& text);         // in single quotes, for bash, zsh and fish alike

// What the value of an option is.
enum class ValueKind { none, flag, keys, settings, schemes, recipes, files };
ValueKind kind_of(const OptionInfo& option, const std::string& path);

// The manual page, in the language of man.
std::string manual_page(const VerbInfo& program);

}  // namespace normlab
