// A picker: grids of buttons on a colour ramp, each of which shows one of several panels.
#include "normlab/report/picker.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/report/palette.h"
#include "normlab/report/svg.h"

namespace normlab {
namespace {

constexpr std::size_t button_levels = 24;

std::string button(const Picker& picker, const Choice& choice, std::size_t number) {
  const double share = std::clamp(std::isnan(choice.share) ? 0.0 : choice.share, 0.0, 1.0);
  const auto level = static_cast<std::size_t>(std::lround(share * (button_levels - 1)));
  static const std::vector<Tone> tones = heat_tones(button_levels);
  return concat("<td><label style=\"--light:", tones[level].light, ";--dark:", tones[level].dark,
                "\"><input type=\"radio\" name=\"", slug(picker.id), "\" value=\"", number, "\" aria-label=\"",
                escape(concat(choice.name, ": ", choice.text)), "\"", number == picker.chosen ? " checked" : "",
                "><span", level > button_levels * 5 / 11 ? " class=\"on-strong\"" : "", ">", escape(choice.text),
                "</span></label></td>");
}

std::string table(const Picker& picker, const ChoiceGrid& grid, std::size_t& number) {
  std::size_t columns = 0;
  for (const auto& row : grid.rows) columns = std::max(columns, row.size());
  std::string out = "<table>\n";
  if (!grid.title.empty()) out += concat("<caption>", escape(grid.title), "</caption>\n");
  out += concat("<tr><th scope=\"col\">", escape(grid.column_title), " \xE2\x86\x92<br>", escape(grid.row_title),
                " \xE2\x86\x93</th>");
  for (std::size_t i = 0; i < columns; ++i) out += concat("<th scope=\"col\">", i, "</th>");
  out += "</tr>\n";
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    out += concat("<tr><th scope=\"row\">", row, "</th>");
    for (const Choice& choice : grid.rows[row]) out += button(picker, choice, number++);
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace

Html html(const Picker& picker) {
  const std::string id = slug(picker.id);
  std::string tables, panels, rules;
  std::size_t shown = 0, number = 0;
  for (const ChoiceGrid& grid : picker.grids) {
    tables += table(picker, grid, number);
    for (const auto& row : grid.rows)
      for (const Choice& choice : row) {
        rules += concat("#", id, ":has(> .choices [value=\"", shown, "\"]:checked) > [data-choice=\"", shown,
                        "\"]{display:contents}\n");
        panels += concat("<div class=\"panel\" data-choice=\"", shown++, "\" role=\"group\" aria-label=\"",
                         escape(choice.name), "\">\n", choice.panel.text, "</div>\n");
      }
  }
  return {concat("<div class=\"picker\" id=\"", id, "\">\n<style>", rules,
                 "</style>\n<fieldset class=\"choices\"><legend>", escape(picker.title), "</legend>\n<p>",
                 escape(picker.note), "</p>\n<div class=\"scroll\">", tables, "</div></fieldset>\n", panels,
                 "</div>\n")};
}

}  // namespace normlab
