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

// The manual page, in the language of man.
std::string manual_page(const VerbInfo& program);

}  // namespace normlab
