// Tables: one type, written as HTML for the report, Markdown for the docs, CSV and JSON for programs.
#include "normlab/report/table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "normlab/base/error.h"
#include "normlab/base/prose.h"
#include "normlab/base/text.h"
#include "normlab/report/scale.h"
#include "normlab/report/svg.h"

namespace normlab {
namespace {

void check(const Table& table) {
  for (const auto& row : table.rows) {
    if (row.size() == table.columns.size()) continue;
    throw Error("table", concat("a row of \"", table.caption, "\" does not fit its columns; got ", row.size(),
                                " cells, expected ", table.columns.size(), "."));
  }
}

// The best number of each column that asks for it; ties are all marked.
std::vector<std::optional<double>> best_values(const Table& table) {
  std::vector<std::optional<double>> best(table.columns.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Best wanted = table.columns[i].best;
    if (wanted == Best::none) continue;
    for (const auto& row : table.rows) {
      const auto& value = row[i].number;
      if (!value || std::isnan(*value)) continue;
      if (!best[i] || (wanted == Best::lowest ? *value < *best[i] : *value > *best[i])) best[i] = value;
    }
  }
  return best;
}

const std::string& key_of(const Column& column) { return column.key.empty() ? column.title : column.key; }

std::string csv_field(std::string text) {
  // A spreadsheet would run such a cell as a formula; the apostrophe makes it text.
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos && !parse_number(text))
    text.insert(text.begin(), '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return concat('"', replace_all(text, "\"", "\"\""), '"');
}

std::string csv_field(const Cell& cell) {
  if (!cell.number) return csv_field(cell.text);
  return std::isnan(*cell.number) ? "" : format_number(*cell.number);
}

std::string html_row(const Table& table, const std::vector<Cell>& row, const std::vector<std::optional<double>>& best) {
  std::string out = "<tr>";
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool is_best = best[i] && row[i].number == best[i];
    const std::string_view tag = i == 0 ? "th" : "td";  // the first cell names its row
    out += concat(
        '<', tag, i == 0 ? " scope=\"row\"" : "", table.columns[i].align == Align::left ? " class=\"left\"" : "", '>',
        is_best ? "<strong title=\"best\">" : "", escape(row[i].text), is_best ? "</strong>" : "", "</", tag, '>');
  }
  return out + "</tr>\n";
}

}  // namespace

Cell text_cell(std::string_view text) { return {std::string(text), {}}; }

Cell count_cell(std::size_t count) { return {concat(count), static_cast<double>(count)}; }

Cell number_cell(double value, int digits) {
  return {std::isnan(value) ? "\xE2\x80\x93" : with_minus(significant(value, digits)), value};
}

Cell signed_cell(double value, int decimals) {
  return {std::isnan(value) ? "\xE2\x80\x93" : signed_number(value, decimals), value};
}

Html html(const Table& table) {
  check(table);
  const std::string caption = escape(table.caption);
  // Wide tables scroll by themselves, also with the keyboard: hence a focusable region with a name.
  std::string out =
      concat("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", caption, "\"><table>\n");
  if (!caption.empty()) out += concat("<caption>", caption, "</caption>\n");
  out += "<thead><tr>";
  for (const Column& column : table.columns) {
    out += concat("<th scope=\"col\"", column.align == Align::left ? " class=\"left\"" : "", '>', escape(column.title),
                  "</th>");
  }
  out += "</tr></thead>\n<tbody>\n";
  const auto best = best_values(table);
  for (const auto& row : table.rows) out += html_row(table, row, best);
  return {out + "</tbody></table></div>\n"};
}

std::string markdown_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\|*_`<>[]").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string markdown(const Table& table) {
  check(table);
  const auto best = best_values(table);
  std::string titles = "|", rules = "|", body;
  for (const Column& column : table.columns) {
    titles += concat(' ', markdown_text(column.title), " |");
    rules += column.align == Align::left ? "---|" : "---:|";
  }
  for (const auto& row : table.rows) {
    body += '|';
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string_view mark = best[i] && row[i].number == best[i] ? "**" : "";
      body += concat(' ', mark, markdown_text(row[i].text), mark, " |");
    }
    body += '\n';
  }
  return concat(titles, '\n', rules, '\n', body);
}

std::string csv(const Table& table) {
  check(table);
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    out += concat(i ? "," : "", csv_field(key_of(table.columns[i])));
  out += "\r\n";
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) out += concat(i ? "," : "", csv_field(row[i]));
    out += "\r\n";
  }
  return out;
}

std::string json(const Table& table) {
  check(table);
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      auto& field = object[key_of(table.columns[i])];
      if (!row[i].number) {
        field = row[i].text;
      } else if (std::isfinite(*row[i].number)) {
        field = *row[i].number;
      } else if (std::isinf(*row[i].number)) {
        field = format_number(*row[i].number);
      }  // NaN stays null
    }
    rows.push_back(std::move(object));
  }
  // Broken UTF-8 in a name must not stop the report.
  return rows.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string plain_text(const Table& table, size_t columns) {
  const auto text_of = [&](size_t line, size_t i) {
    return line == 0 ? table.columns[i].title : table.rows[line - 1][i].text;
  };
  std::vector<size_t> widths;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    widths.push_back(0);
    for (size_t line = 0; line <= table.rows.size(); ++line)
      widths[i] = std::max(widths[i], columns_of(text_of(line, i)));
  }
  constexpr size_t gap = 2;
  std::string out;
  for (size_t first = 1, end; first < table.columns.size() || out.empty(); first = end) {
    size_t used = gap + widths[0];
    for (end = first; end < table.columns.size() && (end == first || used + gap + widths[end] <= columns); ++end)
      used += gap + widths[end];
    if (!out.empty()) out += "\n";
    for (size_t line = 0; line <= table.rows.size(); ++line) {
      for (size_t i = 0; i < end; i = i == 0 ? first : i + 1) {
        const std::string text = text_of(line, i), space(widths[i] - columns_of(text), ' ');
        out += concat("  ", table.columns[i].align == Align::left ? text + space : space + text);
      }
      while (out.back() == ' ') out.pop_back();
      out += "\n";
    }
  }
  out.pop_back();
  return out;
}

}  // namespace normlab
