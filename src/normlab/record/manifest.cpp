// The manifest of a run.
#include "normlab/record/manifest.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "normlab/base/cores.h"
#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "normlab/base/json.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

std::string cpu_name() {
  std::error_code ignored;
  if (!std::filesystem::exists("/proc/cpuinfo", ignored)) return "unknown";
  for (const std::string& line : split(read_file("/proc/cpuinfo"), '\n')) {
    if (line.starts_with("model name")) return trim(line.substr(line.find(':') + 1));
  }
  return "unknown";
}

std::string padded(unsigned value) { return concat(value < 10 ? "0" : "", value); }

Json read_manifest(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {{"sessions", Json::array()}};
  Json manifest = parse_json<Json>(read_file(path));
  const bool sound = manifest.is_object() && manifest.contains("sessions") && manifest["sessions"].is_array();
  if (!sound) throw DataError(path.string(), "is not the manifest of a run. Restore it, or remove it.");
  return manifest;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cpu = cpu_name();
  machine.cores = static_cast<unsigned>(core_count());
  utsname names{};
  if (::uname(&names) == 0) {
    machine.host = names.nodename;
    machine.system = concat(names.sysname, " ", names.release, " ", names.machine);
  }
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) {
    machine.memory_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  }
  return machine;
}

std::string utc_time(std::chrono::system_clock::time_point time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  const auto two = [](auto count) { return padded(static_cast<unsigned>(count)); };
  return concat(static_cast<int>(date.year()), "-", padded(static_cast<unsigned>(date.month())), "-",
                padded(static_cast<unsigned>(date.day())), "T", two(clock.hours().count()), ":",
                two(clock.minutes().count()), ":", two(clock.seconds().count()), "Z");
}

void add_session(const std::filesystem::path& manifest, const Session& session) {
  const Machine machine = this_machine();
  Json content = read_manifest(manifest);
  content["sessions"].push_back({{"started", utc_time(session.started)},
                                 {"version", NORMLAB_VERSION},
                                 {"command", session.command},
                                 {"machine",
                                  {{"host", machine.host},
                                   {"system", machine.system},
                                   {"cpu", machine.cpu},
                                   {"cores", machine.cores},
                                   {"memory_bytes", machine.memory_bytes}}},
                                 {"kernels", session.kernels},
                                 {"dtype", session.dtype},
                                 {"threads", session.threads},
                                 {"device", session.device}});
  write_file_atomically(manifest, content.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace normlab
