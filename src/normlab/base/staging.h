// Staging: files and folders written under a temporary name beside their place, synced, and renamed into it, so
// that a killed process or a full disk leaves no half-written one under its real name.
#pragma once

#include <filesystem>
#include <string_view>

#include "normlab/base/file.h"

namespace normlab {

// A file that takes its place, replacing an older one, at commit(); removed when never committed.
class StagedFile {
 public:
  explicit StagedFile(const std::filesystem::path& final_path);
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;
  ~StagedFile();

  void write(std::string_view bytes) { file_.write(bytes); }
  void commit();

 private:
  std::filesystem::path final_path_;
  std::filesystem::path path_;
  File file_;
  bool committed_ = false;
};

// A folder that takes its place, replacing nothing, at commit(); removed when never committed.
class StagedFolder {
 public:
  explicit StagedFolder(const std::filesystem::path& final_path);
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  ~StagedFolder();

  const std::filesystem::path& path() const { return path_; }
  void commit();  // Error when the place is taken

 private:
  std::filesystem::path final_path_;
  std::filesystem::path path_;
  File claim_;
  bool committed_ = false;
};

// Removes what killed processes left in the folder; what a living process is staging there stays.
void remove_stale_staging(const std::filesystem::path& folder);

// Removes a folder and its content; a kill in between leaves nothing under its name.
void remove_folder(const std::filesystem::path& path);

// Puts on the disk that an entry of this name is there, or is not.
void sync_folder_of(const std::filesystem::path& path);

// Points the symbolic link at the target, in one step also when it exists.
void replace_symlink(const std::filesystem::path& link, const std::filesystem::path& target);

}  // namespace normlab
