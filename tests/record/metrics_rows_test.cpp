// Rows as the quick reader sees them: the same as those of MetricsLog::read, and the same complaints.
#include "normlab/record/metrics_rows.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/random.h"
#include "normlab/record/metrics.h"
#include "sandbox.h"

namespace normlab {
namespace {

using Json = nlohmann::ordered_json;

class MetricsRows : public testing::Test {
 protected:
  // The rows of both readers as text, or the complaint.
  std::string quick(const std::string& content) const {
    std::ofstream(path) << content;
    std::string out;
    try {
      for_each_row(path, [&](const MetricsRow& row) {
        out += std::to_string(row.step);
        for (const auto& value : row.values)
          if (value.is_number) out += " " + std::string(value.key) + "=" + std::to_string(value.number);
        out += "\n";
      });
    } catch (const DataError& error) {
      return error.what();
    }
    return out;
  }
  std::string slow(const std::string& content) const {
    std::ofstream(path) << content;
    std::string out;
    try {
      for (const Json& row : MetricsLog::read(path)) {
        out += std::to_string(row["step"].get<int64_t>());
        for (const auto& [key, value] : row.items())
          if (key != "step" && value.is_number()) out += " " + key + "=" + std::to_string(value.get<double>());
        out += "\n";
      }
    } catch (const DataError& error) {
      return error.what();
    }
    return out;
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "metrics.jsonl";
};

TEST_F(MetricsRows, AreThoseOfTheLog) {
  {
    MetricsLog log(path);
    for (int64_t step = 0; step < 3000; ++step)
      log.append(step, {{"loss", std::ldexp(1.0 + static_cast<double>(step), static_cast<int>(step % 90) - 45)},
                        {"attn/layer00/max_logit", -static_cast<double>(step)},
                        {"bad", step % 3 == 0   ? std::numeric_limits<double>::infinity()
                                : step % 3 == 1 ? -std::numeric_limits<double>::infinity()
                                                : std::nan("")},
                        {"diverged", true}});
  }
  std::vector<Json> rows = MetricsLog::read(path);
  size_t i = 0;
  for_each_row(path, [&](const MetricsRow& row) {
    const Json& other = rows[i++];
    EXPECT_EQ(row.step, other["step"].get<int64_t>());
    EXPECT_EQ(row.number("loss", 0), other["loss"].get<double>());
    EXPECT_EQ(row.number("attn/layer00/max_logit", 0), other["attn/layer00/max_logit"].get<double>());
    EXPECT_EQ(std::isnan(row.number("bad", 0)), std::isnan(other["bad"].get<double>()));
    EXPECT_TRUE(row.has("diverged"));
    EXPECT_EQ(row.number("diverged", 7), 7);
    EXPECT_FALSE(row.has("val_loss"));
  });
  EXPECT_EQ(i, rows.size());
}

TEST_F(MetricsRows, OddLinesAreReadOrRefusedAlike) {
  const std::string good = "{\"step\":1,\"loss\":2.5}\n";
  for (const char* line : {"{\"step\":1}",
                           "{ \"step\" : 1 , \"loss\" : 2.5 }",
                           "{\"loss\":1,\"step\":2}",
                           "{\"step\":1,\"step\":3}",
                           "{\"step\":-1}",
                           "{\"step\":-0}",
                           "{\"step\":1.0}",
                           "{\"step\":1e3}",
                           "{\"step\":01}",
                           "{\"step\":9223372036854775807}",
                           "{\"step\":9223372036854775808}",
                           "{\"step\":\"1\"}",
                           "{\"step\":true}",
                           "{\"step\":1,\"loss\":1.}",
                           "{\"step\":1,\"loss\":.5}",
                           "{\"step\":1,\"loss\":+1}",
                           "{\"step\":1,\"loss\":1e999}",
                           "{\"step\":1,\"loss\":inf}",
                           "{\"step\":1,\"loss\":\"inf\"}",
                           "{\"step\":1,\"loss\":\"text\"}",
                           "{\"step\":1,\"loss\":null}",
                           "{\"step\":1,\"loss\":[1,2]}",
                           "{\"step\":1,\"lo\\u0073s\":3}",
                           "{\"step\":1,\"l\xC3\xB6ss\":3}",
                           "{\"step\":1,\"l\xFFss\":3}",
                           "{\"step\":1,}",
                           "{\"step\":1",
                           "{\"step\":1}}",
                           "[1]",
                           "step",
                           "",
                           "{}",
                           "{\"loss\":1}"}) {
    for (const std::string& content :
         {good + line + "\n" + good, good + line, std::string(line), std::string(line) + "\n"}) {
      EXPECT_EQ(quick(content), slow(content)) << content;
    }
  }
}

TEST_F(MetricsRows, OfEqualKeysTheLastCounts) {
  std::ofstream(path) << "{\"step\":1,\"a\":1,\"a\":2}\n";
  for_each_row(path, [](const MetricsRow& row) { EXPECT_EQ(row.number("a", 0), 2); });
}

TEST_F(MetricsRows, LinesMayBeLongerThanWhatIsReadAtOnce) {
  std::string content;
  for (int step = 0; step < 4; ++step) {
    content += "{\"step\":" + std::to_string(step);
    for (int i = 0; i < 300; ++i)
      content += ",\"" + std::string(1000, 'k') + std::to_string(i) + "\":" + std::to_string(i + step);
    content += "}\n";
  }
  EXPECT_EQ(quick(content), slow(content));
}

}  // namespace
}  // namespace normlab
