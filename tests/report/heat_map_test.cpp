// Tests of heat maps.
#include "normlab/report/heat_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/base64.h"
#include "normlab/base/error.h"
#include "normlab/report/level_image.h"
#include "normlab/report/palette.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

HeatMap sample(std::size_t size) {
  HeatMap map{{"attention", "Attention", "", ""}, "query", "key", "weight", {}, {}, {}};
  for (std::size_t i = 0; i < size; ++i) {
    map.rows.push_back(i == 0 ? " \n" : "<t>");
    map.columns.push_back(i == 0 ? " \n" : "<t>");
    map.values.emplace_back();
    for (std::size_t j = 0; j < size; ++j)
      map.values.back().push_back(j > i ? std::nan("") : static_cast<double>(j + 1) / 10);
  }
  return map;
}

// Of the first image of a drawing: its PNG.
std::string first_png(const std::string& body) {
  const std::string start = "base64,";
  const std::size_t at = body.find(start) + start.size();
  return from_base64(body.substr(at, body.find('"', at) - at)).value();
}

TEST(HeatMap, ADenseMapIsAnImageWithMaskedCellsTransparent) {
  const Figure made = figure(sample(4));
  LevelImage levels{4, 4, {}};  // the ramp runs from 0 to 0.4
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column)
      levels.levels.push_back(
          column > row ? 0 : static_cast<std::uint8_t>(1 + std::lround((column + 1) / 10.0 / 0.4 * 254)));
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    EXPECT_EQ(testing::xml_problem(drawing->body), "");
    EXPECT_EQ(first_png(drawing->body), png(levels));
    EXPECT_THAT(drawing->body, HasSubstr("␣↵"));
    EXPECT_THAT(drawing->body, Not(HasSubstr("not at 0")));
  }
}

TEST(HeatMap, ARampThatDoesNotStartAtZeroSaysSo) {
  HeatMap map = sample(4);
  map.values[2][1] = -3.25;
  map.from_zero = false;
  const Figure made = figure(map);
  for (const Drawing* drawing : {&made.wide, &made.narrow})
    EXPECT_THAT(drawing->body, HasSubstr("colours start at −3.25, not at 0"));
  EXPECT_EQ(nlohmann::json::parse(made.hover)["range"][0], -3.25);
}

TEST(HeatMap, ARampThatEndsBelowTheLargestValueSaysSo) {
  HeatMap map = sample(4);
  map.ramp_end = 0.2;
  EXPECT_THAT(figure(map).narrow.body, HasSubstr(">≥ 0.200<"));
  EXPECT_EQ(nlohmann::json::parse(figure(map).hover)["range"][1], 0.2);
  map.ramp_end = 0.4;
  EXPECT_THAT(figure(map).narrow.body, Not(HasSubstr("≥")));
}

TEST(HeatMap, HoverOfAnImageHasRangeAndNames) {
  const auto data = nlohmann::json::parse(figure(sample(3)).hover);
  EXPECT_EQ(data["range"], nlohmann::json({0.0, 0.3}));
  EXPECT_FALSE(data.contains("heat"));
  EXPECT_EQ(data["rows"][1], "<t>");
  EXPECT_FALSE(data.contains("columns"));  // the same as the rows
}

TEST(HeatMap, TableHasTheStrongest) {
  const Table table = figure(sample(3)).data;
  EXPECT_EQ(table.rows[2][2].number, 0.3);
  EXPECT_EQ(table.rows[2][4].number, 0.2);
  EXPECT_TRUE(std::isnan(*table.rows[0][4].number));
}

// A grid of results: the ramp starts at the least value, the numbers stand in the cells and all are in the table.
TEST(HeatMap, GridOfResults) {
  HeatMap map{{"grid", "Loss", "", ""}, "gain", "p", "loss", {"1", "8"}, {"2", "3"}, {{1.5, 1.4}, {std::nan(""), 2}}, 3,
              /*from_zero=*/false};
  const Figure made = figure(map);
  EXPECT_EQ(testing::xml_problem(made.wide.body), "");
  EXPECT_EQ(testing::count(made.wide.body, ">1.500<"), 1u);
  for (const char* end : {">1.400<", ">2.000<"}) EXPECT_EQ(testing::count(made.wide.body, end), 2u);  // and the ramp's
  EXPECT_EQ(testing::count(made.wide.body, "on-strong"), 1u);                                         // the largest
  EXPECT_THAT(made.wide.body, HasSubstr(heat_tones(24).front().light));
  EXPECT_THAT(made.wide.body, HasSubstr("colours start at 1.40, not at 0"));
  EXPECT_EQ(made.data.rows[0][2].text, "1.400");
  EXPECT_EQ(made.data.rows[1][1].text, "–");
  EXPECT_EQ(nlohmann::json::parse(made.hover)["heat"][1][1], 2.0);
  map.values = {{1.5, 1.5}, {1.5, 1.5}};
  EXPECT_NO_THROW(render(map));
}

TEST(HeatMap, LargeMapsSkipNamesAndStaySmall) {
  const Figure made = figure(sample(128));
  EXPECT_LT(testing::count(made.wide.body, "<text"), 140u);
  EXPECT_LT(made.wide.body.size(), 25000u);
  EXPECT_EQ(made.data.rows.size(), 32u);
  EXPECT_THAT(made.data.caption, HasSubstr("one row in 4"));
}

TEST(HeatMap, Edges) {
  EXPECT_NO_THROW(render(sample(0)));
  HeatMap map = sample(2);
  map.values[1][0] = -5;
  map.values[1][1] = HUGE_VAL;
  EXPECT_NO_THROW(render(map));
  map.values[1].pop_back();
  EXPECT_THROW(figure(map), Error);
}

}  // namespace
}  // namespace normlab
