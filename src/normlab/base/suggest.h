// What a user may have meant by a name that does not exist: keys, schemes, verbs and options.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace normlab {

// The candidate that the name surely stands for: the same but for case, dashes and underscores, the same without its
// section ("p" for norm.p), or another common word for it ("learning_rate" for optim.lr).
std::optional<std::string> alias_of(std::string_view name, std::span<const std::string> candidates);

// That, or else the nearest candidate by edit distance, or nothing when none is near.
std::optional<std::string> suggest(std::string_view name, std::span<const std::string> candidates);

}  // namespace normlab
