// SHA-256 of text and files, as lower-case hexadecimal.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace normlab {

// The sum of bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void add(std::string_view bytes);
  std::string hex();  // once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view content);
std::string sha256_file(const std::filesystem::path& path);

}  // namespace normlab
