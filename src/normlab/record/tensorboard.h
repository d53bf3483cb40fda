// TensorBoard event files, written without TensorFlow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "normlab/base/file.h"

namespace normlab {

uint32_t crc32c(std::string_view bytes);

// Appends to a new file of the folder; TensorBoard reads the files of a folder one after the other.
class EventWriter {
 public:
  explicit EventWriter(const std::filesystem::path& folder);
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  ~EventWriter();

  // Call it on resume: TensorBoard then forgets what earlier files hold for this step and later ones.
  void session_start(int64_t step);
  void scalar(std::string_view tag, int64_t step, double value, double wall_time);
  void flush();

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void add(std::string_view event);

  File file_;
  std::string buffer_;
};

}  // namespace normlab
