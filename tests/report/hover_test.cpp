// Tests of the values for the script.
#include "normlab/report/hover.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace normlab {
namespace {

TEST(HoverValues, ReadBackAsJson) {
  const std::vector<XAxis> x = {{"step", "training step"}, {"time", "time (s)"}};
  const YAxis y = {"loss"};
  const Style style = ordered_styles(1)[0];
  const std::vector<Series> first = {{"a \"<\"", style, {{0, 10}, {0, 1.5}}, {2, 1.23456789}},
                                     {"b", style, {{0, 10}, {0, 2.5}}, {2, std::nan("")}, {1, 1}, {3, 3}}};
  const std::vector<Series> second = {{"b", style, {{0, 10}, {0, 2.5}}, {4, 1e-7}}};
  const auto data = nlohmann::json::parse(hover_values({x, y, {first, second}}));
  EXPECT_EQ(data["titles"], (std::vector<std::string>{"training step", "time (s)"}));
  EXPECT_EQ(data["labels"], (std::vector<std::string>{"a \"<\"", "b"}));
  EXPECT_EQ(data["columns"].size(), 3u);  // the steps are shared
  EXPECT_EQ(data["plots"][0][1]["x"], data["plots"][1][0]["x"]);
  EXPECT_EQ(data["plots"][1][0]["series"], 1);
  EXPECT_EQ(data["plots"][0][0]["y"][1], 1.23457);
  EXPECT_TRUE(data["plots"][0][1]["y"][1].is_null());
  EXPECT_EQ(data["plots"][0][1]["high"][0], 3);
  EXPECT_FALSE(data["plots"][0][0].contains("low"));
  EXPECT_EQ(data["plots"][1][0]["y"][1], 1e-7);
}

TEST(HoverValues, LongCurvesAreThinned) {
  std::vector<double> steps(100000), values(100000);
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i] = static_cast<double>(i), values[i] = std::sin(0.01 * steps[i]);
  const std::vector<XAxis> x = {{"step", "step"}};
  const YAxis y = {"loss"};
  const std::vector<Series> series = {{"a", ordered_styles(1)[0], {steps}, values}};
  EXPECT_LT(hover_values({x, y, {series}}).size(), 10000u);
}

}  // namespace
}  // namespace normlab
