// Files: descriptors whose every failure is an Error that names the file, whole-file reading, atomic writing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace normlab {

// Throws the Error "cannot <action>: <reason of errno>", with a hint when the disk is full.
[[noreturn]] void throw_errno(const std::filesystem::path& path, std::string_view action);

// An open file; closed at the end of its scope and on exec. Errors call it by its path, or by the path `shown` for a
// temporary name the user never chose.
class File {
 public:
  // DataError when missing, unreadable or anything but a regular file: a pipe could hang us, a device never end. What
  // the caller opened for us, as /dev/stdin or /dev/fd/N, may be a pipe.
  static File open_to_read(const std::filesystem::path& path);
  static File create(const std::filesystem::path& path, const std::filesystem::path& shown);  // Error when it exists
  static File append(const std::filesystem::path& path);                                      // creates it when missing
  // To read and write; creates it when missing. Error when it is a symbolic link or not a regular file.
  static File open_own(const std::filesystem::path& path);
  static File open_folder(const std::filesystem::path& path);  // to sync or lock it

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  size_t read(char* buffer, size_t size);  // 0 at the end of the file
  void write(std::string_view bytes);      // all of them, straight to the system
  void sync();
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  File(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
};

std::string read_file(const std::filesystem::path& path);

// The file has either its old or its new content, whatever happens, and the new one is on the disk on return.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace normlab
