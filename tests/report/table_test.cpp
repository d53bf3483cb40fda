// Tests of tables in their four forms.
#include "normlab/report/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "xml_check.h"

namespace normlab {
namespace {

using ::testing::HasSubstr;

Table sample() {
  return {"Losses <b>",
          {{"scheme", "", Align::left},
           {"loss (nats)", "loss", Align::right, Best::lowest},
           {"BLEU", "", Align::right, Best::highest}},
          {{text_cell("p = 2"), number_cell(1.51234), number_cell(33.24)},
           {text_cell("p | 3"), number_cell(1.48999), number_cell(33.24)},
           {text_cell("a \"b\", c"), number_cell(std::nan("")), number_cell(-HUGE_VAL)}}};
}

TEST(Table, HtmlMarksTheBestAndEscapes) {
  const std::string text = html(sample()).text;
  EXPECT_EQ(testing::xml_problem(text), "");
  EXPECT_THAT(text, HasSubstr("<strong title=\"best\">1.490</strong>"));
  EXPECT_EQ(testing::count(text, "<strong"), 3u);  // one loss, both equal BLEU scores
  EXPECT_THAT(text, HasSubstr("Losses &lt;b&gt;"));
  EXPECT_THAT(text, HasSubstr("<th scope=\"row\" class=\"left\">p = 2</th>"));
  EXPECT_THAT(text, HasSubstr("<td>–</td>"));
}

TEST(Table, Markdown) {
  EXPECT_EQ(markdown(sample()),
            "| scheme | loss (nats) | BLEU |\n|---|---:|---:|\n"
            "| p = 2 | 1.512 | **33.24** |\n"
            "| p \\| 3 | **1.490** | **33.24** |\n"
            "| a \"b\", c | – | −inf |\n");
}

TEST(Table, MarkdownStaysOneLineARow) {
  Table table{"", {{"a"}}, {{text_cell("x\ny <script> *z*")}}};
  EXPECT_EQ(markdown(table), "| a |\n|---:|\n| x y \\<script\\> \\*z\\* |\n");
}

TEST(Table, CsvIsRfc4180WithFullPrecision) {
  EXPECT_EQ(csv(sample()),
            "scheme,loss,BLEU\r\n"
            "p = 2,1.51234,33.24\r\n"
            "p | 3,1.48999,33.24\r\n"
            "\"a \"\"b\"\", c\",,-inf\r\n");
  EXPECT_EQ(csv({"", {{"a,b"}}, {{text_cell("x\r\ny")}}}), "\"a,b\"\r\n\"x\r\ny\"\r\n");
}

TEST(Table, JsonReadsBack) {
  const auto rows = nlohmann::json::parse(json(sample()));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["loss"], 1.51234);
  EXPECT_TRUE(rows[2]["loss"].is_null());
  EXPECT_EQ(rows[2]["BLEU"], "-inf");
  EXPECT_EQ(rows[2]["scheme"], "a \"b\", c");
}

TEST(Table, JsonSurvivesBrokenUtf8) {
  EXPECT_NO_THROW(nlohmann::json::parse(json({"", {{"a"}}, {{text_cell("\xFF\xC3")}}})));
}

TEST(Table, RowsMustFit) {
  Table table = sample();
  table.rows.push_back({text_cell("short")});
  EXPECT_THROW(html(table), Error);
  EXPECT_THROW(markdown(table), Error);
  EXPECT_THROW(csv(table), Error);
  EXPECT_THROW(json(table), Error);
}

TEST(Cells, Signed) {
  EXPECT_EQ(signed_cell(-0.0213, 3).text, "−0.021");
  EXPECT_EQ(signed_cell(0.0213, 3).text, "+0.021");
  EXPECT_EQ(signed_cell(-0.0213, 3).number, -0.0213);
}

TEST(Csv, NoCellIsAFormula) {
  Table table;
  table.columns = {{"name", "", Align::left}, {"value", ""}};
  for (const char* name : {"=1+1", "+x", "-x", "@sum", "\tx", "-1.5", "plain"})
    table.rows.push_back({text_cell(name), number_cell(-2.5, 2)});
  EXPECT_EQ(
      csv(table),
      "name,value\r\n'=1+1,-2.5\r\n'+x,-2.5\r\n'-x,-2.5\r\n'@sum,-2.5\r\n'\tx,-2.5\r\n-1.5,-2.5\r\nplain,-2.5\r\n");
}

}  // namespace
}  // namespace normlab
