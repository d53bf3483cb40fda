// The report page: one self-contained HTML file, the verdict first, then charts and tables, then how to repeat it.
#include "normlab/report/page.h"

#include "normlab/base/base64.h"
#include "normlab/base/sha256.h"
#include "normlab/base/text.h"
#include "normlab/report/assets.h"
#include "normlab/report/svg.h"

namespace normlab {
namespace {

// The form in which a content security policy names a script that it lets run.
std::string script_hash(std::string_view script) {
  const std::string hex = sha256_hex(script);
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return concat(" 'sha256-", to_base64(bytes), "'");
}

std::string head(const Page& page) {
  return concat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
                "<meta http-equiv=\"Content-Security-Policy\" content=\"", security_policy(page.live), "\">\n",
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
                "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"",
                // Without a referrer a browser hides where a form comes from, also from our own server.
                page.live ? "same-origin" : "no-referrer", "\">\n<title>", escape(page.title), "</title>\n<style>",
                page_css, "</style>\n<style id=\"chart-style\">", chart_css, "</style>\n",
                page.live ? concat("<style>", live_css, "</style>\n") : "", "</head>\n");
}

std::string trail(const Page& page) {
  if (page.trail.empty()) return "";
  std::string out = "<p class=\"trail\">";
  for (const Link& link : page.trail)
    out += concat("<a href=\"", escape(link.address), "\">", escape(link.text), "</a> <span>/</span> ");
  return out + "</p>\n";
}

std::string header(const Page& page) {
  std::string out = concat("<header>\n", trail(page), "<h1>", escape(page.title), "</h1>\n");
  if (!page.subtitle.empty()) out += concat("<p class=\"subtitle\">", escape(page.subtitle), "</p>\n");
  if (!page.setup.empty()) out += concat("<p class=\"setup\">", escape(page.setup), "</p>\n");
  out += page.progress.text;
  if (!page.verdict.empty()) {
    const std::string verdict = replace_all(escape(page.verdict), "p-value", "<span class=\"whole\">p-value</span>");
    out += concat("<p class=\"verdict\">", verdict, "</p>\n");
  }
  if (!page.detail.empty()) out += concat("<p class=\"detail\">", escape(page.detail), "</p>\n");
  if (!page.figures.empty()) {
    out += "<dl class=\"figures\">\n";
    for (const KeyFigure& figure : page.figures) {
      out += concat("<div><dt>", escape(figure.label), "</dt><dd>", escape(figure.value), "</dd></div>\n");
    }
    out += "</dl>\n";
  }
  for (const std::string& notice : page.notices)
    out += concat("<p class=\"notice\" role=\"note\">", escape(notice), "</p>\n");
  // What the script says when the server does not answer.
  if (page.live) out += "<p class=\"notice\" id=\"connection\" role=\"status\" hidden></p>\n";
  return out + "</header>\n";
}

// Numbered, because two titles may give the same slug.
std::string section_id(const Page& page, std::size_t i) {
  return concat("s", i + 1, '-', slug(page.sections[i].title));
}

std::string contents(const Page& page) {
  if (page.sections.size() < 2) return "";
  std::string out = "<nav aria-label=\"Contents\"><ul>\n";
  for (std::size_t i = 0; i < page.sections.size(); ++i) {
    out += concat("<li><a href=\"#", section_id(page, i), "\">", escape(page.sections[i].title), "</a></li>\n");
  }
  return out + "</ul></nav>\n";
}

std::string section(const Page& page, std::size_t i) {
  const Section& part = page.sections[i];
  const std::string id = section_id(page, i);
  std::string out =
      concat("<section aria-labelledby=\"", id, "\">\n<h2 id=\"", id, "\">", escape(part.title), "</h2>\n");
  if (!part.text.empty()) out += paragraph(part.text).text;
  for (const Html& block : part.blocks) out += block.text;
  return out + "</section>\n";
}

std::string footer(const Page& page) {
  std::string out = "<footer>\n";
  if (!page.command.empty()) out += concat("<h2>Repeat it</h2>\n", code_block(page.command).text);
  for (const std::string& line : page.footer) out += paragraph(line).text;
  return out + "</footer>\n";
}

}  // namespace

std::string security_policy(bool live) {
  return concat("default-src 'none'; base-uri 'none'; form-action ", live ? "'self'" : "'none'",
                "; style-src 'unsafe-inline'; img-src data:; ", live ? "connect-src 'self'; " : "", "script-src",
                script_hash(page_js), live ? script_hash(live_js) : "");
}

std::string render(const Page& page) {
  std::string out = concat(head(page), page.wide ? "<body class=\"wide\">" : "<body>",
                           "\n<a class=\"skip\" href=\"#main\">Skip to the charts</a>\n", header(page), contents(page),
                           "<main id=\"main\">\n");
  for (std::size_t i = 0; i < page.sections.size(); ++i) out += section(page, i);
  return concat(out, "</main>\n", footer(page), page.live ? concat("<script>", live_js, "</script>\n") : "", "<script>",
                page_js, "</script>\n</body>\n</html>\n");
}

}  // namespace normlab
