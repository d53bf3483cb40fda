#include "normlab/record/checksums.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr const char *sums_file = "SHA256SUMS", *seal_key = "sha256";

std::string sum_of(const nlohmann::json& object) {
  return sha256_hex(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void write_checksums(const fs::path& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name != sums_file && name != "state.json")
      lines.push_back(concat(sha256_file(entry.path()), "  ", name, "\n"));
  }
  std::sort(lines.begin(), lines.end());
  write_file_atomically(folder / sums_file, join(lines, ""));
}

std::vector<std::string> checksum_faults(const fs::path& folder) {
  constexpr size_t digits = 64;
  std::vector<std::string> faults;
  std::error_code missing;
  if (!fs::exists(folder / sums_file, missing)) return faults;
  for (const std::string& line : split(trim(read_file(folder / sums_file)), '\n')) {
    const std::string name = line.size() > digits + 2 ? line.substr(digits + 2) : "";
    if (name.empty() || name.find('/') != std::string::npos) {
      faults.push_back(concat(sums_file, " has a line that is not a checksum"));
      continue;
    }
    if (!fs::exists(folder / name, missing)) continue;
    if (sha256_file(folder / name) != line.substr(0, digits))
      faults.push_back(concat(name, " has changed since it was written: its SHA-256 is not the one in ", sums_file));
  }
  return faults;
}

void require_checksums(const fs::path& folder) {
  const std::vector<std::string> faults = checksum_faults(folder);
  if (!faults.empty())
    throw DataError(folder.string(), concat("the checkpoint is damaged: ", join(faults, "; "),
                                            ". Delete its folder to use another one."));
}

void seal(nlohmann::json& object) {
  object.erase(seal_key);
  object[seal_key] = sum_of(object);
}

bool is_intact(nlohmann::json object) {
  if (!object.is_object() || !object.contains(seal_key)) return true;
  const nlohmann::json expected = object[seal_key];
  object.erase(seal_key);
  return expected == sum_of(object);
}

}  // namespace normlab
