// The manifest of a run.
#include "normlab/record/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/file.h"
#include "sandbox.h"

namespace normlab {
namespace {

TEST(Manifest, UtcTime) {
  using std::chrono::system_clock;
  EXPECT_EQ(utc_time(system_clock::from_time_t(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_time(system_clock::from_time_t(1709251199)), "2024-02-29T23:59:59Z");
}

TEST(Manifest, ThisMachineIsKnown) {
  const Machine machine = this_machine();
  EXPECT_FALSE(machine.host.empty() || machine.system.empty() || machine.cpu.empty());
  EXPECT_GE(machine.cores, 1u);
  EXPECT_GT(machine.memory_bytes, 1u << 26);
}

TEST(Manifest, SessionsAreAdded) {
  TemporaryFolder folder;
  const auto path = folder / "manifest.json";
  add_session(path, {.command = {"normlab", "train"}, .kernels = "AVX2", .threads = 2});
  add_session(
      path,
      {.command = {"normlab", "train", "--resume", "\xff"}, .kernels = "composite", .threads = 1, .device = "cuda:1"});
  const auto manifest = nlohmann::json::parse(read_file(path));
  ASSERT_EQ(manifest["sessions"].size(), 2u);
  const auto& first = manifest["sessions"][0];
  EXPECT_EQ(first["command"], (std::vector<std::string>{"normlab", "train"}));
  EXPECT_EQ(first["kernels"], "AVX2");
  EXPECT_EQ(first["dtype"], "float32");
  EXPECT_EQ(first["threads"], 2);
  EXPECT_EQ(first["device"], "cpu");
  EXPECT_EQ(manifest["sessions"][1]["device"], "cuda:1");
  EXPECT_EQ(first["version"], NORMLAB_VERSION);
  EXPECT_EQ(first["machine"]["cpu"], this_machine().cpu);
  EXPECT_EQ(first["started"].get<std::string>().size(), 20u);
  EXPECT_EQ(manifest["sessions"][1]["command"][2], "--resume");
}

TEST(Manifest, DamageIsNotOverwritten) {
  TemporaryFolder folder;
  for (const char* bad : {"", "{", "[]", "{\"sessions\":1}"}) {
    write_file_atomically(folder / "manifest.json", bad);
    EXPECT_THROW(add_session(folder / "manifest.json", {}), DataError);
    EXPECT_EQ(read_file(folder / "manifest.json"), bad);
  }
}

}  // namespace
}  // namespace normlab
