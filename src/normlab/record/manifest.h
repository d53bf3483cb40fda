// The manifest of a run: with which program, command and machine each of its sessions was started.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace normlab {

struct Machine {
  std::string host, system, cpu;
  unsigned cores = 0;
  uint64_t memory_bytes = 0;
};
Machine this_machine();

std::string utc_time(std::chrono::system_clock::time_point time);  // 2026-01-31T23:59:59Z

struct Session {
  std::vector<std::string> command;
  std::string kernels;            // the instruction set the kernels run on
  std::string dtype = "float32";  // of matrix products
  int threads = 1;
  std::string device = "cpu";
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
};

// Adds a session to manifest.json, which the first one creates; DataError when the file is damaged.
void add_session(const std::filesystem::path& manifest, const Session& session);

}  // namespace normlab
