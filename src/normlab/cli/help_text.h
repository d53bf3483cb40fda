// The help of a verb, as wide as the terminal.
#pragma once

#include "normlab/cli/verb_info.h"

namespace normlab {

// `path` is what calls the verb: "normlab config print".
std::string help_text(const VerbInfo& verb, const std::string& path, size_t columns);

// "[OPTIONS] [RUN]": what follows the path of a verb.
std::string usage_of(const VerbInfo& verb);
// "-c, --config FILE ..."
std::string option_label(const OptionInfo& option);
// The groups that options or verbs belong to, in the order of their first members.
std::vector<std::string> groups_of(const std::vector<OptionInfo>& options);
std::vector<std::string> groups_of(const std::vector<VerbInfo>& verbs);

// Makes CLI11 print help_text().
class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string path, CLI::AppFormatMode mode) const override;
};

}  // namespace normlab
