// Checksums of a checkpoint: SHA256SUMS beside its files, and a seal in state.json, which changes after the others.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace normlab {

// Lists the SHA-256 of every file of the folder, as `sha256sum --check` reads it; state.json has its own seal.
void write_checksums(const std::filesystem::path& folder);

// What is wrong, in words; nothing when all is well, or when the folder has no sums. A listed file that is missing is
// not counted: a trial drops the moments of its optimiser when it ends.
std::vector<std::string> checksum_faults(const std::filesystem::path& folder);
// DataError when something is wrong.
void require_checksums(const std::filesystem::path& folder);

// Adds the SHA-256 of the object to it.
void seal(nlohmann::json& object);
bool is_intact(nlohmann::json object);  // true also without a seal

}  // namespace normlab
