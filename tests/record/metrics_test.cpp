// The metrics log: exact numbers, torn lines, and going back to an earlier step.
#include "normlab/record/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/base/text.h"
#include "sandbox.h"
#include "system_calls.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

class Metrics : public testing::Test {
 protected:
  void write(const std::string& content) { write_file_atomically(path, content); }
  std::vector<int> steps() const {
    std::vector<int> found;
    for (const Json& row : MetricsLog::read(path)) found.push_back(row["step"]);
    return found;
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
};

TEST_F(Metrics, OneObjectALineWithTheStepFirst) {
  MetricsLog log(path);
  log.append(250, {{"loss", 1.5}, {"note", "a\nb"}, {"tokens", 16000}});
  log.append(500, {{"val_loss", 0.1}, {"step", 7}});
  EXPECT_EQ(read_file(path),
            "{\"step\":250,\"loss\":1.5,\"note\":\"a\\nb\",\"tokens\":16000}\n{\"step\":500,\"val_loss\":0.1}\n");
}

TEST_F(Metrics, RowsAreCountedAlsoThoseOfEarlierSessions) {
  EXPECT_EQ(MetricsLog(path).rows(), 0);
  write("{\"step\":1}\n{\"step\":2}\n{\"st");
  MetricsLog log(path);
  EXPECT_EQ(log.rows(), 2);
  log.append(3, {{"loss", 1.5}});
  EXPECT_EQ(log.rows(), 3);
}

// Or a power cut could lose the file with all that was synced into it.
TEST_F(Metrics, TheNameOfANewFileIsSynced) {
  int folders = 0;
  const ScopedHook hook(on_fsync, [&](int descriptor) {
    folders += std::filesystem::read_symlink(concat("/proc/self/fd/", descriptor)) == canonical(folder.path());
    return 0;
  });
  const MetricsLog created(path);
  EXPECT_EQ(folders, 1);
  const MetricsLog continued(path);
  EXPECT_EQ(folders, 1);
}

TEST_F(Metrics, NumbersReadBackExactly) {
  std::vector<double> values = {0.0, -0.0, 0.1, 1e-320, 5e-324, 1.7976931348623157e308, 1.0 / 3, 1e22, 123456789.0};
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t bits = draw_bits(stream_key(5), i);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) values.push_back(value);
  }
  MetricsLog(path).append(1, {{"values", values}});
  const auto read = MetricsLog::read(path).at(0)["values"].get<std::vector<double>>();
  ASSERT_EQ(read.size(), values.size());
  EXPECT_EQ(std::memcmp(read.data(), values.data(), values.size() * sizeof(double)), 0);
}

TEST_F(Metrics, NumbersThatJsonLacks) {
  const double inf = std::numeric_limits<double>::infinity();
  MetricsLog(path).append(1, {{"loss", std::nan("")}, {"deep", {{"list", {inf, -inf, 2.0}}}}});
  EXPECT_EQ(read_file(path), "{\"step\":1,\"loss\":\"nan\",\"deep\":{\"list\":[\"inf\",\"-inf\",2.0]}}\n");
  const Json row = MetricsLog::read(path).at(0);
  EXPECT_TRUE(std::isnan(row["loss"].get<double>()));
  EXPECT_EQ(row["deep"]["list"].get<std::vector<double>>(), (std::vector<double>{inf, -inf, 2}));
}

TEST_F(Metrics, EveryTearOfTheLastLineIsTolerated) {
  const std::string whole = "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":2.25}\n";
  const size_t second = whole.find('\n') + 1;
  for (size_t size = second; size < whole.size() - 1; ++size) {
    write(whole.substr(0, size));
    EXPECT_EQ(steps(), std::vector<int>{1}) << size;
  }
  write(whole.substr(0, whole.size() - 1));  // only the newline is missing: nothing was lost
  EXPECT_EQ(steps(), (std::vector<int>{1, 2}));
  write(whole.substr(0, second) + std::string(20, '\0'));  // what a power cut leaves
  EXPECT_EQ(steps(), std::vector<int>{1});
  write("");
  EXPECT_TRUE(steps().empty());
}

TEST_F(Metrics, WriterGoesOnAfterATornLine) {
  write("{\"step\":1}\n{\"step\":2,\"lo");
  MetricsLog(path).append(2, {{"loss", 1}});
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2,\"loss\":1}\n");
  write("{\"step\":1}");
  MetricsLog(path).append(2, Json::object());
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(Metrics, GarbageInTheMiddleIsNamedByItsLine) {
  for (const char* bad :
       {"garbage", "", "[1]", "{\"loss\":1}", "{\"step\":\"x\"}", "{\"step\":1e999}", "{\"step\":1} x"}) {
    write(std::string("{\"step\":1}\n") + bad + "\n{\"step\":3}\n");
    try {
      MetricsLog::read(path);
      ADD_FAILURE() << "accepted " << bad;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("[" + path.string() + "] line 2 is not a JSON object with a step"));
    }
  }
  EXPECT_THROW(MetricsLog::read(folder / "missing"), DataError);
}

// Differences of such steps would overflow.
TEST_F(Metrics, AStepIsACount) {
  for (const char* step : {"-1", "-9223372036854775808", "9223372036854775808", "1e300", "2.5", "null"}) {
    write_file_atomically(path, std::string("{\"step\":") + step + "}\n{\"step\":1}\n");
    EXPECT_THROW(MetricsLog::read(path), DataError) << step;
  }
  write_file_atomically(path, "{\"step\":9223372036854775807}\n");
  EXPECT_EQ(MetricsLog::read(path).size(), 1u);
}

TEST_F(Metrics, RetainDropsRowsAndTornLines) {
  const auto up_to = [](int64_t last) {
    return [last](const nlohmann::ordered_json& row) { return row["step"].get<int64_t>() <= last; };
  };
  const std::string kept = "{\"step\":1,\"loss\":0.10}\n{\"step\":2}\n{\"step\":2,\"val_loss\":3}\n";
  write(kept + "{\"step\":3}\n{\"step\":4,\"lo");
  MetricsLog::retain(path, up_to(2));
  EXPECT_EQ(read_file(path), kept);
  MetricsLog::retain(path, up_to(2));
  EXPECT_EQ(read_file(path), kept);
  MetricsLog::retain(path, up_to(0));
  EXPECT_EQ(read_file(path), "");
  MetricsLog::retain(folder / "missing", up_to(0));
  EXPECT_EQ(folder.count_entries(), 1u);
}

TEST_F(Metrics, KilledWriterLosesNoWholeLine) {
  const int status = run_in_child([&]() -> int {
    MetricsLog log(path);
    for (int step = 0; step < 100; ++step) log.append(step, {{"loss", step}});
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_TRUE(killed_by(status, SIGKILL));
  EXPECT_EQ(steps().size(), 100u);
}

TEST_F(Metrics, FullDiskIsAnErrorAndTheLogGoesOnLater) {
  const int status = run_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1005, 1005};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    MetricsLog log(path);
    try {
      for (int step = 0; step < 1000; ++step) log.append(step, {{"loss", 1}});
    } catch (const Error&) {
      return 0;
    }
    return 1;
  });
  EXPECT_TRUE(exited_with(status, 0));
  const size_t whole = steps().size();
  EXPECT_NE(read_file(path).back(), '\n');
  MetricsLog(path).append(5000, Json::object());
  EXPECT_EQ(steps().size(), whole + 1);
}

}  // namespace
}  // namespace normlab
