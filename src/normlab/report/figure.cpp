// A figure: a chart drawn for wide and for narrow windows, its switches, its hover values and its table.
#include "normlab/report/figure.h"

#include "normlab/base/text.h"
#include "normlab/report/assets.h"
#include "normlab/report/layout.h"

namespace normlab {
namespace {

constexpr double title_size = 16, title_line = 22;

// `frame` is the view box and, for a file of its own, the size.
std::string svg_start(const Figure& figure, const Canvas& canvas, std::string_view frame) {
  const std::string id = concat(slug(figure.caption.id), canvas.narrow ? "-narrow" : "-wide");
  // Title and desc sit in <defs>: as children of the root a browser would show the title as a tip over the whole chart.
  return concat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" ", frame, " class=\"chart ", canvas.narrow ? "narrow" : "wide",
      "\" role=\"group\" aria-roledescription=\"chart\" aria-labelledby=\"", id, "-title\" aria-describedby=\"", id,
      "-desc\">\n<defs><title id=\"", id, "-title\">", escape(figure.caption.title), "</title><desc id=\"", id,
      "-desc\">", escape(figure.caption.description), "</desc></defs>\n");
}

std::string svg(const Figure& figure, const Drawing& drawing, const Canvas& canvas) {
  const std::string frame = concat("viewBox=\"0 0 ", px(canvas.width), ' ', px(drawing.height), '"');
  std::string out = svg_start(figure, canvas, frame) + drawing.body;
  for (const std::string& view : drawing.views) out += view;
  return out + "</svg>\n";
}

// Radio buttons: the style sheet shows the chosen view by itself, without the script, and keys work as in any form.
std::string html(const Switch& choice, const std::string& id) {
  std::string out = concat("<fieldset><legend>", escape(choice.label), "</legend>");
  for (std::size_t i = 0; i < choice.options.size(); ++i) {
    out += concat("<label><input type=\"radio\" name=\"", id, '-', choice.axis, "\" data-axis=\"", choice.axis,
                  "\" value=\"", i, "\"", i == 0 ? " checked" : "", "><span>", escape(choice.options[i]),
                  "</span></label>");
  }
  return out + "</fieldset>";
}

// `drawings`: the charts with what surrounds them.
Html html(const Figure& figure, std::string_view css_class, const std::string& drawings) {
  const std::string id = slug(figure.caption.id);
  std::string out = concat("<figure id=\"", id, "\"", css_class, ">\n", drawings, "<div class=\"tools\">\n");
  for (const Switch& choice : figure.switches) {
    if (choice.options.size() > 1) out += html(choice, id);
  }
  out += concat(collapsed("Show the numbers", html(figure.data)).text,
                "<button type=\"button\" class=\"save\" hidden>Save SVG</button>\n</div>\n");
  if (!figure.hover.empty()) {
    out += concat("<script type=\"application/json\">", replace_all(figure.hover, "<", "\\u003c"), "</script>\n");
  }
  return {out + "</figure>\n"};
}

}  // namespace

Html html(const Figure& figure) {
  return html(figure, "", svg(figure, figure.wide, wide_canvas) + svg(figure, figure.narrow, narrow_canvas));
}

Html compact_html(const Figure& figure) {
  return html(figure, " class=\"compact\"", svg(figure, figure.narrow, narrow_canvas));
}

std::string svg_file(const Figure& figure) {
  constexpr double margin = 16;
  const Drawing& drawing = figure.wide;
  const std::string size =
      concat("width=\"", px(wide_canvas.width + 2 * margin), "\" height=\"", px(drawing.height + 2 * margin), '"');
  const std::string corner = px(-margin);
  const std::string box = concat(" viewBox=\"", corner, ' ', corner, ' ', px(wide_canvas.width + 2 * margin), ' ',
                                 px(drawing.height + 2 * margin), '"');
  return concat(svg_start(figure, wide_canvas, size + box), "<style>", chart_css,
                "</style>\n<rect class=\"paper\" x=\"", corner, "\" y=\"", corner, "\" ", size, "/>\n", drawing.body,
                drawing.views.empty() ? "" : drawing.views[0], "</svg>\n");
}

double draw_heading(Svg& svg, const Canvas& canvas, const Caption& caption) {
  double y = 0;
  for (const std::string& line : wrap(caption.title, 0.92 * canvas.width, title_size)) {
    svg.text(0, (y += title_line) - 6, line, {{"class", "title"}, {"aria-hidden", "true"}});
  }
  for (const std::string& line : wrap(caption.note, canvas.width, font_size)) {
    svg.text(0, (y += line_height) - 4, line, {{"class", "note"}});
  }
  return y + 14;
}

}  // namespace normlab
