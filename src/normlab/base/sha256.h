// SHA-256 of text and files, as lower-case hexadecimal.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace normlab {

std::string sha256_hex(std::string_view content);
std::string sha256_file(const std::filesystem::path& path);

}  // namespace normlab
