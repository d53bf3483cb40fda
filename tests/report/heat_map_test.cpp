// Tests of heat maps.
#include "normlab/report/heat_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/report/palette.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

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

TEST(HeatMap, OnlyUnmaskedCellsAreDrawn) {
  const Figure made = figure(sample(4));
  for (const Drawing* drawing : {&made.wide, &made.narrow}) {
    EXPECT_EQ(testing::xml_problem(drawing->body), "");
    std::size_t cells = 0;
    for (std::size_t at = drawing->body.find("tone cell\" color"); at != std::string::npos;
         at = drawing->body.find("tone cell\" color", at + 1)) {
      const std::size_t d = drawing->body.find(" d=\"", at), end = drawing->body.find('>', at);
      if (d < end) cells += testing::count(drawing->body.substr(d, end - d), "z");
    }
    EXPECT_EQ(cells, 10u);
    EXPECT_THAT(drawing->body, HasSubstr("␣↵"));
  }
}

TEST(HeatMap, HoverHasEveryValue) {
  const auto data = nlohmann::json::parse(figure(sample(3)).hover);
  EXPECT_EQ(data["heat"][2][1], 0.2);
  EXPECT_TRUE(data["heat"][0][1].is_null());
  EXPECT_EQ(data["rows"][1], "<t>");
}

TEST(HeatMap, TableHasTheStrongest) {
  const Table table = figure(sample(3)).data;
  EXPECT_EQ(table.rows[2][2].number, 0.3);
  EXPECT_EQ(table.rows[2][4].number, 0.2);
  EXPECT_TRUE(std::isnan(*table.rows[0][4].number));
}

// A grid of results: the ramp starts at the least value, the numbers stand in the cells and all are in the table.
TEST(HeatMap, GridOfResults) {
  HeatMap map{{"grid", "Loss", "", ""},        "gain", "p", "loss", {"1", "8"}, {"2", "3"},
              {{1.5, 1.4}, {std::nan(""), 2}}, 3};
  const Figure made = figure(map);
  EXPECT_EQ(testing::xml_problem(made.wide.body), "");
  EXPECT_EQ(testing::count(made.wide.body, ">1.500<"), 1u);
  for (const char* end : {">1.400<", ">2.000<"}) EXPECT_EQ(testing::count(made.wide.body, end), 2u);  // and the ramp's
  EXPECT_EQ(testing::count(made.wide.body, "on-strong"), 1u);                                         // the largest
  EXPECT_THAT(made.wide.body, HasSubstr(heat_tones(24).front().light));
  EXPECT_EQ(made.data.rows[0][2].text, "1.400");
  EXPECT_EQ(made.data.rows[1][1].text, "–");
  EXPECT_EQ(nlohmann::json::parse(made.hover)["heat"][1][1], 2.0);
  map.values = {{1.5, 1.5}, {1.5, 1.5}};
  EXPECT_NO_THROW(render(map));
}

TEST(HeatMap, LargeMapsSkipNamesAndStaySmall) {
  const Figure made = figure(sample(128));
  EXPECT_LT(testing::count(made.wide.body, "<text"), 140u);
  EXPECT_LT(made.wide.body.size(), 250000u);
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
