// Lines of a text file: UTF-8, plain or gzip, distinguished by content.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// The lines between line feeds, which alone separate them: other line breaks of Unicode are characters like any other,
// so that files stay aligned. DataError for a file that is missing, empty, a damaged gzip, or, by line, not UTF-8.
std::vector<std::string> read_lines(const std::filesystem::path& path);

// Whole lines from the beginning of the file, some `bytes` of text in all; no more of it is read.
std::vector<std::string> read_first_lines(const std::filesystem::path& path, size_t bytes);

// All of it as one text, with its line feeds.
std::string read_text_file(const std::filesystem::path& path);

// What gzip packed, all members one after the other; `where` names it in the DataError about damage.
std::string gunzip(std::string_view packed, const std::string& where);

}  // namespace normlab
