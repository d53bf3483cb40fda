// The folder that is served: paths of addresses to folders below it, and nothing else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace normlab {

// The bytes that %XX stand for; nothing when an escape is not whole.
std::optional<std::string> percent_decode(std::string_view text);
std::string percent_encode(std::string_view path);  // all but letters, digits, "-._~" and "/"

class ServedFolder {
 public:
  explicit ServedFolder(const std::filesystem::path& folder);  // UsageError when it is not a folder

  const std::filesystem::path& root() const { return root_; }  // without links
  std::string name() const;
  // What "studies/demo" of an address, with its escapes, names: a folder in this one. Empty: this one itself. Nothing
  // for "." and "..", for what is not there, and where a link leads outside.
  std::optional<std::filesystem::path> find(std::string_view path) const;
  // True for what exists, at the place where its links lead, in this folder.
  bool holds(const std::filesystem::path& path) const;
  std::string relative(const std::filesystem::path& path) const;  // "studies/demo"; empty for the folder itself

 private:
  std::filesystem::path root_;
};

}  // namespace normlab
