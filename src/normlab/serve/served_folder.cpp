#include "normlab/serve/served_folder.h"

#include <algorithm>

#include "normlab/base/error.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string percent_encode(std::string_view path) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c))
      out += c;
    else
      out += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

ServedFolder::ServedFolder(const fs::path& folder) {
  std::error_code problem;
  root_ = fs::canonical(folder, problem);
  if (problem || !fs::is_directory(root_, problem))
    throw UsageError(folder.string(), "is not a folder; expected one with runs and studies below it.");
}

std::string ServedFolder::name() const { return root_.has_filename() ? root_.filename().string() : root_.string(); }

std::optional<fs::path> ServedFolder::find(std::string_view path) const {
  const auto decoded = percent_decode(path);
  if (!decoded || decoded->find('\0') != std::string::npos) return std::nullopt;
  if (decoded->empty()) return root_;
  for (const std::string& part : split(*decoded, '/'))
    if (part.empty() || part == "." || part == "..") return std::nullopt;
  const fs::path found = root_ / *decoded;
  std::error_code problem;
  if (!fs::is_directory(found, problem) || problem || !holds(found)) return std::nullopt;
  return found;
}

bool ServedFolder::holds(const fs::path& path) const {
  std::error_code problem;
  const fs::path real = fs::canonical(path, problem);
  if (problem) return false;
  return std::mismatch(root_.begin(), root_.end(), real.begin(), real.end()).first == root_.end();
}

std::string ServedFolder::relative(const fs::path& path) const {
  const std::string text = path.lexically_relative(root_).generic_string();
  return text == "." ? "" : text;
}

}  // namespace normlab
