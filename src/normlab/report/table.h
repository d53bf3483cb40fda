// Tables: one type, written as HTML for the report, Markdown for the docs, CSV and JSON for programs, and for a
// terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/base/terminal.h"
#include "normlab/report/html.h"

namespace normlab {

// What people read, and for numbers what programs read: full precision, whatever the text shows.
struct Cell {
  std::string text;
  std::optional<double> number;
};
Cell text_cell(std::string_view text);
Cell count_cell(std::size_t count);
Cell number_cell(double value, int digits = 4);  // significant digits; a dash when it is not a number
Cell signed_cell(double value, int decimals);    // with + or a true minus sign

enum class Align { left, right };
enum class Best { none, lowest, highest };  // which value of a column is marked

struct Column {
  std::string title;
  std::string key = {};  // the name in CSV and JSON; the title when empty
  Align align = Align::right;
  Best best = Best::none;
};

struct Table {
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

// Each throws when a row has not as many cells as there are columns.
Html html(const Table& table);
std::string markdown(const Table& table);
std::string markdown_text(std::string_view text);  // on one line, with what would be markup escaped
std::string csv(const Table& table);               // RFC 4180
std::string json(const Table& table);  // an array with one object per row; NaN is null, infinity the text "inf"

// Aligned columns for a terminal, without a last newline. Columns that do not fit follow in further blocks, each with
// the first column again.
std::string plain_text(const Table& table, size_t columns = text_width());

}  // namespace normlab
