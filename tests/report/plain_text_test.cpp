// Tables on a terminal: columns that do not fit follow below, with the first column again.
#include <gtest/gtest.h>

#include "normlab/report/table.h"

namespace normlab {
namespace {

const Table table{
    "",
    {{"variant", "variant", Align::left, Best::none}, {"layers"}, {"parameters"}},
    {{text_cell("p = 2"), text_cell("4"), text_cell("3.2M")}, {text_cell("q"), text_cell("12"), text_cell("1")}}};

TEST(PlainText, OneBlockWhereItFits) {
  EXPECT_EQ(plain_text(table, 80),
            "  variant  layers  parameters\n"
            "  p = 2         4        3.2M\n"
            "  q            12           1");
}

TEST(PlainText, FurtherBlocksBelow) {
  EXPECT_EQ(plain_text(table, 20),
            "  variant  layers\n"
            "  p = 2         4\n"
            "  q            12\n"
            "\n"
            "  variant  parameters\n"
            "  p = 2          3.2M\n"
            "  q                 1");
}

}  // namespace
}  // namespace normlab
